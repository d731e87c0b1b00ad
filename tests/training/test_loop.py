"""The loop learns, repeats itself exactly, goes on where it stopped, and keeps what is good when things go wrong."""

import json
import os
import re
import signal
import threading
import time

import pytest
import torch
from small import SMALL, small

import rankshot
from rankshot import data, fewshot
from rankshot.models import Conv4
from rankshot.models.shipped import folder_of
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_notes, read_tensors
from rankshot.training import TrainConfig, loop, run_folder, train
from rankshot.training.assembly import Objects, network_and_method, where_to_train
from rankshot.training.callbacks import Callback
from rankshot.training.loop import Diverged
from rankshot.training.validation import validation_tasks


def metrics(folder):
    """Apart from times."""
    return [{name: each for name, each in line.items() if name != "seconds"} for line in run_folder.read_metrics(folder)]


def tensors(folder, name):
    return read_tensors(folder / f"{name}.safetensors")


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def test_what_a_run_leaves(tmp_path, device):
    config = small(device=device)
    status = train(config, tmp_path / "run")
    folder = tmp_path / "run"
    assert status.update == 24
    assert sorted(set(os.listdir(folder)) - {"class_means.safetensors"}) == [  # which are there where they help
        "README.md",
        "classes.json",
        "config.json",
        "metrics.jsonl",
        "model.safetensors",
        "state.safetensors",
    ]
    assert TrainConfig.from_json(folder / "config.json") == config

    lines = metrics(folder)
    assert [line["update"] for line in lines if "loss" in line] == [4, 8, 12, 16, 20, 24]
    validations = [line for line in lines if "validation" in line]
    assert [line["update"] for line in validations] == [8, 16, 24]
    means = [line["validation"]["retrieval 20-way"]["mean"] for line in validations]
    assert [line["best"] for line in validations] == [mean > max([-1, *means[:at]]) for at, mean in enumerate(means)]
    assert status.best == max(means)
    assert status.best_update == validations[means.index(max(means))]["update"]

    # The best network is the one that was kept, and it is as good as was said.
    assert read_notes(folder / "model.safetensors")["update"] == str(status.best_update)
    model = rankshot.from_pretrained(folder)
    (result,) = fewshot.evaluate(model, data.load("glyphs", "val"), [fewshot.Retrieval(20)], episodes=20, seed=0)
    assert result.mean == pytest.approx(status.best, abs=1e-5 if device == "cpu" else 0.01)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"method": "map-ssvm", "schedule": "cosine"},
        {"sign": -1, "schedule": "step", "decay_every": 5},
        {"metric": "ndcg", "augment": ("crop", "flip")},
        {"metric": "precision@5", "alpha": 1.0},
        {"method": "siamese", "rotations": True, "batch_norm": "batch", "validation_ways": (3,)},
        {"validate_every": 0},
    ],
    ids=str,
)
def test_every_way_to_train(tmp_path, device, settings):
    folder = tmp_path / "run"
    train(small(**settings, device=device), folder)
    first, _ = network_and_method(small(**settings), Preprocess(1, 28, 28), 419, Objects(), None)
    began, found = first.state_dict(), rankshot.from_pretrained(folder).state_dict()
    assert all(each.isfinite().all() for each in found.values())
    assert all(not torch.equal(began[name], each) for name, each in found.items())  # everything has learned
    assert metrics(folder)[-1]["update"] == 24
    tasks = {name for line in metrics(folder) for name in line.get("validation", {})}
    asked = settings.get("validation_ways", (5, 20)) if settings.get("validate_every", 8) else ()
    assert tasks == {f"{kind} {way}-way" for way in asked for kind in ("1-shot", "retrieval")}


def test_it_learns(tmp_path):
    """Three hundred updates of a small network, on classes it has never seen: far above where it began."""
    train(small(updates=300, validate_every=300, batch_classes=8, filters=16), tmp_path / "run")
    train(small(updates=1, validate_every=1, learning_rate=1e-12, batch_classes=8, filters=16), tmp_path / "untrained")
    (before,), (after,) = ([x for x in metrics(tmp_path / name) if "best" in x] for name in ("untrained", "run"))
    task = "1-shot 5-way"
    assert after["validation"][task]["mean"] > before["validation"][task]["mean"] + 0.15


@pytest.mark.parametrize("method", ["map-dlm", "siamese", "smooth-ap"])
def test_the_same_seed_gives_the_same_run(tmp_path, method, device):
    config = small(method=method, augment=("crop",), device=device)
    train(config, tmp_path / "one")
    torch.manual_seed(12345)  # global state does not count
    torch.rand(3)
    train(config, tmp_path / "other")
    train(config.changed(seed=1), tmp_path / "third")
    assert metrics(tmp_path / "one") == metrics(tmp_path / "other") != metrics(tmp_path / "third")
    for name in ("model", "state"):
        assert same(tensors(tmp_path / "one", name), tensors(tmp_path / "other", name))
    assert not same(tensors(tmp_path / "one", "model"), tensors(tmp_path / "third", "model"))


@pytest.mark.parametrize("method", ["map-dlm", pytest.param("siamese", marks=pytest.mark.slow)])
def test_two_threads_repeat_themselves_too(tmp_path, method):
    """The default network and batch, where torch shares work among threads: still bit for bit."""
    torch.set_num_threads(2)
    try:
        for name in ("one", "other"):
            train(TrainConfig.of(method=method, updates=6, validate_every=0, log_every=1, device="cpu"), tmp_path / name)
    finally:
        torch.set_num_threads(1)
    assert metrics(tmp_path / "one") == metrics(tmp_path / "other")
    assert same(tensors(tmp_path / "one", "state"), tensors(tmp_path / "other", "state"))


@pytest.mark.parametrize("settings", [{}, {"method": "prototypical"}, {"mirror": True, "augment": ("flip",)}], ids=str)
def test_begun_with_other_weights(tmp_path, settings):
    train(small(updates=4, validate_every=0), tmp_path / "first")
    config = small(updates=1, validate_every=0, learning_rate=1e-12, init=str(tmp_path / "first"), **settings)
    train(config, tmp_path / "second")
    images = torch.rand(3, 1, 28, 28)
    found = rankshot.from_pretrained(tmp_path / "second")
    one, other = (
        next(each for each in model.modules() if isinstance(each, Conv4))
        for model in (rankshot.from_pretrained(tmp_path / "first"), found)
    )
    for name, each in one.named_parameters():  # an update at so low a rate moves nothing
        torch.testing.assert_close(dict(other.named_parameters())[name], each, msg=name)
    assert found(images).shape == one(images).shape


def test_what_it_begins_with_stays_until_others_are_better(tmp_path, capsys):
    wrecking = {"learning_rate": 3.0, "batch_size": 16, "filters": 64}
    config = small(updates=4, validate_every=2, init="conv4-omniglot", **wrecking)
    status = train(config, tmp_path / "second")
    told = [line for line in metrics(tmp_path / "second") if "validation" in line]
    assert [(line["update"], line["best"]) for line in told] == [(0, True), (2, False), (4, False)]
    assert (status.best_update, read_notes(tmp_path / "second" / "model.safetensors")["update"]) == (0, "0")
    assert same(tensors(folder_of("conv4-omniglot"), "model"), tensors(tmp_path / "second", "model"))
    assert re.search(r"about .+: 4 updates of .+ s, 2 validations of .+ s\n", capsys.readouterr().out)


def test_the_start_is_validated_once(tmp_path):
    """Killed before its first checkpoint tells that, or after it."""
    train(small(updates=2, validate_every=0), tmp_path / "first")
    config = small(updates=4, validate_every=4, init=str(tmp_path / "first"))
    train(config, tmp_path / "whole")
    for moment in ("validate", "learn"):
        folder = tmp_path / moment
        with pytest.MonkeyPatch.context() as patch:
            of = run_folder.MetricsLog if moment == "validate" else loop.Step
            patch.setattr(of, "wait_for_disk" if moment == "validate" else "__call__", interrupted)
            with pytest.raises(KeyboardInterrupt):
                train(config, folder)
        train(config, folder, resume=True)
        assert metrics(folder) == metrics(tmp_path / "whole")
        assert same(tensors(folder, "state"), tensors(tmp_path / "whole", "state"))


def interrupted(*_):
    raise KeyboardInterrupt


def test_what_other_weights_have_learned_from_is_not_unseen(tmp_path):
    train(small(updates=2, split="trainval", validate_every=0), tmp_path / "first")
    config = small(updates=2, init=str(tmp_path / "first"))
    with pytest.warns(UserWarning, match="has learned from some of the validation classes"):
        train(config, tmp_path / "second")
    assert set(run_folder.classes_of(tmp_path / "second")) == set(run_folder.classes_of(tmp_path / "first"))
    (tmp_path / "first").rename(tmp_path / "moved")
    with pytest.warns(UserWarning, match="has learned from some of the validation classes"):
        assert train(config.changed(updates=3), tmp_path / "second", resume=True).update == 3


def test_what_cannot_be_begun_with(tmp_path):
    message = "conv4-cub has in_channels 3, filters 64, and this network in_channels 1, filters 4: "
    with pytest.raises(ValueError, match=message):
        train(small(init="conv4-cub", filters=4), tmp_path / "run")
    with pytest.raises(FileNotFoundError, match="nowhere holds no network"):
        train(small(init="nowhere"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_batches_without_a_pair(tmp_path):
    """Nothing to rank is no number: null in metrics.jsonl, which stays JSON."""
    with pytest.warns(UserWarning, match="no query of this batch"):
        train(small(batch_classes=2, batch_size=2, updates=12, log_every=1, seed=1), str(tmp_path / "run"))
    values = [line["batch_map"] for line in metrics(tmp_path / "run") if "loss" in line]
    assert None in values
    assert "NaN" not in (tmp_path / "run" / "metrics.jsonl").read_text()


def test_huge_seeds(tmp_path):
    train(small(updates=1, seed=10**30), tmp_path / "run")


def test_refused_while_another_trains_nothing_changes(tmp_path):
    train(small(updates=2), tmp_path / "run")
    before = (tmp_path / "run" / "config.json").read_bytes()
    with run_folder.only_process_in(tmp_path / "run"), pytest.raises(ValueError, match="another process is training"):
        train(small(updates=9), tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_global_randomness_is_left_alone(tmp_path):
    torch.manual_seed(7)
    expected = torch.rand(2)
    torch.manual_seed(7)
    train(small(updates=2), tmp_path / "run")
    assert torch.equal(torch.rand(2), expected)


def test_asked_to_stop_it_can_go_on(tmp_path):
    """Ctrl-C, for real, while it trains; then on to the end: the same weights and the same metrics."""
    config = small(updates=40)
    train(config, tmp_path / "whole")

    def interrupt():
        while not (tmp_path / "parts" / "metrics.jsonl").exists() or len(metrics(tmp_path / "parts")) < 2:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt, match=r"stopped after update \d+, and its checkpoint is in .*parts"):
        train(config, tmp_path / "parts")
    assert 0 < run_folder.status_of(tmp_path / "parts").update < 40
    assert train(config, tmp_path / "parts", resume=True).update == 40
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    for name in ("model", "state"):
        assert same(tensors(tmp_path / "parts", name), tensors(tmp_path / "whole", name))


def test_resuming_on_either_device(tmp_path, device):
    config = small(device=device, schedule="step", decay_every=10)
    train(config, tmp_path / "whole")
    train(small(device=device, schedule="step", decay_every=10, updates=12), tmp_path / "parts")
    train(config, tmp_path / "parts", resume=True)
    whole, parts = (tensors(tmp_path / name, "state") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for name in whole:
        if device == "cpu":
            assert torch.equal(whole[name], parts[name]), name
        else:  # cuDNN and atomics: not to the last bit
            torch.testing.assert_close(whole[name], parts[name], rtol=0.1, atol=0.02, msg=name)


def test_a_finished_run_stays_as_it_is(tmp_path):
    status = train(SMALL, tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert train(SMALL, tmp_path / "run", resume=True) == status
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_resume_starts_what_is_not_there(tmp_path):
    assert train(small(updates=2), tmp_path / "run", resume=True).update == 2


def test_more_updates_than_first_planned(tmp_path):
    train(small(updates=6), tmp_path / "run")
    train(SMALL, tmp_path / "run", resume=True)
    train(SMALL, tmp_path / "whole")
    assert same(tensors(tmp_path / "run", "state"), tensors(tmp_path / "whole", "state"))
    assert TrainConfig.from_json(tmp_path / "run" / "config.json") == SMALL


def test_other_settings_are_refused(tmp_path):
    train(small(updates=2), tmp_path / "run")
    with pytest.raises(ValueError, match="was begun with seed 0 and cannot go on with 1"):
        train(small(updates=2, seed=1), tmp_path / "run", resume=True)


def test_another_number_of_threads_is_told(tmp_path, capsys):
    train(small(updates=2), tmp_path / "run")
    torch.set_num_threads(2)
    try:
        train(small(updates=3), tmp_path / "run", resume=True)
    finally:
        torch.set_num_threads(1)
    assert "began with 1 threads, goes on with 2: last bits may differ" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["map-dlm", "siamese"])
def test_a_loss_that_becomes_nan(tmp_path, device, method):
    """Good updates, then steps so large that numbers overflow: the checkpoint before stays, and the network too."""
    folder = tmp_path / "run"
    train(small(method=method, updates=12, device=device), folder)
    config = json.loads((folder / "config.json").read_text())
    config["optimiser"]["learning_rate"] = 1e38
    (folder / "config.json").write_text(json.dumps(config))
    before = {name: (folder / name).read_bytes() for name in ("model.safetensors", "state.safetensors")}
    with pytest.raises(
        Diverged, match=r"training broke down at update \d+: .*(nan|finite).* The checkpoint before it is intact"
    ):
        train(small(method=method, updates=40, device=device, learning_rate=1e38), folder, resume=True)
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert all(each.isfinite().all() for each in tensors(folder, "state").values())


def test_a_checkpoint_cut_short(tmp_path):
    train(small(updates=2), tmp_path / "run")
    path = tmp_path / "run" / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=r"state.safetensors is damaged or cut short"):
        train(small(updates=4), tmp_path / "run", resume=True)


def test_a_checkpoint_of_another_model(tmp_path):
    train(small(updates=2), tmp_path / "run")
    train(small(updates=2, filters=4), tmp_path / "other")
    os.replace(tmp_path / "other" / "state.safetensors", tmp_path / "run" / "state.safetensors")
    with pytest.raises(
        ValueError, match=r"state.safetensors is of another model: 'model.0.0.weight' must be \(8, 1, 3, 3\)"
    ):
        train(small(updates=4), tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data": "omniglut"}, "unknown data set 'omniglut': there is 'glyphs', 'omniglot'"),
        ({"method": "contrastive"}, "unknown method 'contrastive': there is 'fast-ap'"),
        ({"metric": "mrr"}, "unknown metric 'mrr'"),
        ({"batch_classes": 420}, "a batch must have 2 to 419 classes, as many as there are, got 420"),
        ({"batch_size": 81}, "4 classes have as few as 80 images together, got batch size 81"),
        ({"validation_ways": (49,)}, "49-way tasks need 49 classes, but there are 48"),
        ({"method": "map-ssvm", "sign": -1}, "sign"),
        ({"sign": 2}, "sign must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        (
            {"method": "siamese", "alpha": 3.0},
            "'siamese' has no setting 'alpha': that is a setting of 'map-ssvm', 'map-dlm'",
        ),
    ],
    ids=str,
)
def test_bad_settings_leave_nothing_behind(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        train(small(**settings), tmp_path / "run")
    assert os.listdir(tmp_path) == []


def test_no_gpu():
    if torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(ValueError, match="device is 'cuda', but torch finds no CUDA device here"):
        where_to_train(small(device="cuda"))
    assert where_to_train(small(device="auto")) == (torch.device("cpu"), torch.float32)
    assert where_to_train(small(precision="bfloat16"))[1] == torch.bfloat16


def test_validation_tasks_fit_the_images():
    images = data.load("glyphs", "val")
    names = [str(task) for task in validation_tasks(TrainConfig(), images)]
    assert names == ["1-shot 5-way", "1-shot 20-way", "retrieval 5-way", "retrieval 20-way"]
    keep = images.labels < 7
    few = data.ImageSet(images.images[keep], images.labels[keep], images.classes[:7])
    names = [str(task) for task in validation_tasks(TrainConfig(), few)]
    assert names == ["1-shot 5-way", "1-shot 7-way", "retrieval 5-way", "retrieval 7-way"]
    assert validation_tasks(TrainConfig(), None) == []


class TestAverage:
    def test_it_is_the_mean_of_the_weights_with_the_latest_counting_most(self, tmp_path):
        """Against the weights after every update, written down by runs of each length."""
        settings = {"updates": 5, "validate_every": 0, "average": 0.7, "schedule": "constant"}
        train(small(**settings), tmp_path / "run")
        kept = tensors(tmp_path / "run", "model")
        weights = []
        for updates in range(1, 6):
            folder = tmp_path / str(updates)
            train(small(**{**settings, "average": 0.0, "updates": updates}), folder)
            weights.append(tensors(folder, "model"))
        shares = [0.7**ago for ago in reversed(range(5))]
        for name, each in kept.items():
            expected = weights[-1][name]
            if each.is_floating_point():
                expected = sum(share * one[name] for share, one in zip(shares, weights, strict=True)) / sum(shares)
            torch.testing.assert_close(each, expected, msg=name)

    def test_it_is_what_is_validated_and_kept_and_training_does_not_notice(self, tmp_path):
        train(small(average=0.9), tmp_path / "average")
        train(small(), tmp_path / "plain")
        with_average, plain = tensors(tmp_path / "average", "state"), tensors(tmp_path / "plain", "state")
        assert all(torch.equal(with_average[name], each) for name, each in plain.items())
        said = [line["validation"] for line in metrics(tmp_path / "average") if line.get("best")][-1]
        images = data.load("glyphs", "val")
        tasks = validation_tasks(small(), images)
        model = rankshot.from_pretrained(tmp_path / "average")
        found = fewshot.summary(fewshot.evaluate(model, images, tasks, 20, seed=0))
        assert found == said
        assert not same(tensors(tmp_path / "average", "model"), tensors(tmp_path / "plain", "model"))

    def test_it_is_resumed(self, tmp_path):
        train(small(average=0.9, updates=24), tmp_path / "whole")
        train(small(average=0.9, updates=13), tmp_path / "parts")
        train(small(average=0.9, updates=24), tmp_path / "parts", resume=True)
        assert same(tensors(tmp_path / "whole", "state"), tensors(tmp_path / "parts", "state"))


def test_learning_from_the_validation_classes_too(tmp_path):
    train(small(updates=2, split="trainval", validate_every=0), tmp_path / "run")
    learned = json.loads((tmp_path / "run" / "classes.json").read_text())
    assert learned == list(data.load("glyphs", "trainval").classes)
    with pytest.raises(ValueError, match="split 'trainval' leaves no classes to validate on: set validate_every to 0"):
        train(small(split="trainval"), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_validation_with_several_shots(tmp_path):
    train(small(updates=4, validation_ways=(3,), validation_shots=(1, 5)), tmp_path / "run")
    (line,) = [line for line in metrics(tmp_path / "run") if "validation" in line]
    assert list(line["validation"]) == ["1-shot 3-way", "5-shot 3-way", "retrieval 3-way"]


@pytest.mark.parametrize(
    "settings", [{"memory": 40}, {"memory": 40, "micro_batch": 7}, {"method": "siamese", "memory": 40}], ids=str
)
def test_a_memory_is_part_of_the_checkpoint(tmp_path, settings, device):
    """Stopped in the middle, it goes on with what it remembered, bit for bit."""
    config = small(**settings, device=device, checkpoint_every=5)
    train(config, tmp_path / "whole")

    class Stops(Callback):
        def updated(self, update, loss, batch_map, per_second):
            if update >= 8:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "parts", callbacks=[Stops()])
    assert 8 * 32 <= tensors(tmp_path / "parts", "state")["method.loss.added"] < 24 * 32
    train(config, tmp_path / "parts", resume=True)
    assert same(tensors(tmp_path / "whole", "state"), tensors(tmp_path / "parts", "state"))
    without = small(**{name: value for name, value in settings.items() if name != "memory"}, device=device)
    train(without, tmp_path / "without")
    assert not same(tensors(tmp_path / "whole", "model"), tensors(tmp_path / "without", "model"))


def test_micro_batches_as_large_as_the_batch_are_the_batch(tmp_path):
    """The same numbers by another way: but for the last bits, which sums in another order have."""
    whole, parts = (small(updates=4, validate_every=0, **how) for how in ({}, {"micro_batch": small().batch.size}))
    train(whole, tmp_path / "whole")
    train(parts, tmp_path / "parts")
    found, expected = tensors(tmp_path / "parts", "model"), tensors(tmp_path / "whole", "model")
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-4, atol=1e-5)


def test_batches_in_parts_that_cannot_be(tmp_path):
    for settings, message in (
        ({"micro_batch": 10**4}, "micro_batch must be no more than batch_size"),
        ({"memory": 3}, "memory must hold a batch of"),
        ({"memory": 10**7}, "memory is 10000000, and there are .* images to learn from"),
        ({"memory": 100, "method": "nearest"}, "memory is for methods that are a loss on embeddings, and nearest is none"),
        ({"micro_batch": 4, "method": "prototypical"}, "micro_batch is for methods that are a loss"),
    ):
        with pytest.raises(ValueError, match=message):
            train(small(**settings), tmp_path / "run")
        assert not (tmp_path / "run").exists()
