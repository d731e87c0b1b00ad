"""`train` with objects in place of names, callbacks, and the ways in which a run ends."""

import json
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from pictures import class_folders
from small import SMALL, small
from torch import nn

import rankshot
from rankshot import data, losses, report
from rankshot.methods import Context, LossMethod
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors
from rankshot.training import Callback, TrainConfig, train
from rankshot.training.callbacks import loggers_for
from rankshot.training.loop import Diverged
from rankshot.training.run_folder import read_metrics, status_of
from rankshot.vectors import NotFinite

GLYPHS = Preprocess(1, 28, 28, invert=True)  # as the data set is made ready


def trunk():
    return nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())


class Heard(Callback):
    def __init__(self):
        self.heard = []

    def started(self, folder, settings):
        self.heard.append(("started", settings["updates"]))

    def updated(self, update, loss, batch_map, per_second):
        self.heard.append(("updated", update))

    def validated(self, update, results, is_best):
        self.heard.append(("validated", update))

    def ended(self, update):
        self.heard.append(("ended", update))


class Fails(Callback):
    """At one moment of training."""

    def __init__(self, moment):
        setattr(self, moment, self.fail)

    def fail(self, *arguments):
        raise RuntimeError("mine")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("started", [("started", 8), ("ended", 0)]),
        ("message", [("started", 8), ("ended", 0)]),
        ("updated", [("started", 8), ("updated", 4), ("ended", 4)]),
        ("ended", [("started", 8), ("updated", 4), ("updated", 8), ("ended", 8)]),
    ],
)
def test_whatever_has_started_ends_also_when_another_one_fails(tmp_path, moment, expected):
    before, after = Heard(), Heard()
    with pytest.raises(RuntimeError, match="mine"):
        train(small(updates=8, validate_every=0), tmp_path / "run", callbacks=[before, Fails(moment), after])
    assert before.heard == expected
    assert after.heard == {"started": [], "updated": [("started", 8), ("ended", 4)]}.get(moment, expected)


def test_a_logger_is_closed_when_training_breaks_down(tmp_path):
    class TooLarge(nn.Module):
        def forward(self, embeddings, labels):
            return embeddings.sum() * 1e38

    heard = Heard()
    with pytest.raises(Diverged):
        train(small(updates=8, validate_every=0), tmp_path / "run", loss=TooLarge(), callbacks=[heard])
    assert heard.heard == [("started", 8), ("ended", 0)]


def test_dropout_repeats_itself_also_in_a_resumed_run(tmp_path, device):
    def network():
        torch.manual_seed(3)
        return rankshot.wrap(nn.Sequential(trunk(), nn.Dropout(0.5)), preprocess=GLYPHS, name="mine")

    class Stops(Callback):
        def updated(self, update, *numbers):
            if update == 8:
                raise RuntimeError("stopped")

    config = small(updates=12, checkpoint_every=4, validate_every=0, device=device)
    train(config, tmp_path / "whole", network=network())
    torch.manual_seed(99)
    before = torch.get_rng_state()
    given = network()
    torch.set_rng_state(before)
    with pytest.raises(RuntimeError, match="stopped"):
        train(config, tmp_path / "cut", network=given, callbacks=[Stops()])
    assert torch.equal(torch.get_rng_state(), before)  # what others draw is not changed by a training
    train(config, tmp_path / "cut", network=network(), resume=True)
    whole, cut = (read_tensors(tmp_path / name / "state.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())
    plain = rankshot.wrap(trunk(), preprocess=GLYPHS, name="mine")
    torch.manual_seed(3)
    train(config, tmp_path / "plain", network=plain)
    assert not torch.equal(
        read_tensors(tmp_path / "plain" / "state.safetensors")["model.0.weight"], whole["model.0.0.weight"]
    )


def test_a_network_a_loss_and_images_that_are_given(tmp_path):
    seen, held_out = data.load("glyphs", "train"), data.load("glyphs", "val")
    torch.manual_seed(3)
    network = rankshot.wrap(trunk(), preprocess=GLYPHS, name="mine")
    first = {name: each.clone() for name, each in network.state_dict().items()}
    heard = Heard()
    given = {"network": network, "loss": losses.NCALoss(0.2), "train_set": seen, "val_set": held_out}
    status = train(small(updates=8), tmp_path / "run", callbacks=[heard], **given)
    assert status.update == 8
    assert heard.heard == [
        ("started", 8), ("updated", 4), ("updated", 8), ("validated", 8), ("ended", 8),
    ]  # fmt: skip
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["method"] == {"name": "NCALoss", "is_object": True}
    assert config["network"]["architecture"] == {"name": "mine", "is_object": True}
    assert config["data"]["name"] == "given from Python"
    assert config["model"] == {"name": "mine", "in_channels": 1}
    stored = read_tensors(tmp_path / "run" / "start.safetensors")
    assert all(torch.equal(stored[name], each) for name, each in first.items())
    again = rankshot.from_pretrained(tmp_path / "run", network=trunk())
    images = torch.rand(2, 1, 28, 28)
    best = read_tensors(tmp_path / "run" / "model.safetensors")
    network.load_state_dict(best)
    assert torch.equal(again(images), network.eval()(images))
    with pytest.raises(
        ValueError, match=r"run holds a network 'mine', and there is 'adapted', 'conv4'.*give the network to from_pr"
    ):
        rankshot.from_pretrained(tmp_path / "run")
    with pytest.raises(ValueError, match="is of another model"):
        rankshot.from_pretrained(tmp_path / "run", network=nn.Sequential(nn.Conv2d(1, 5, 3), nn.Flatten()))


def test_objects_equal_to_names_give_the_same_weights(tmp_path):
    """A run by names, and one with the very same parts as objects, end with the same weights."""
    train(small(method="nca", temperature=0.3), tmp_path / "named")
    train(small(), tmp_path / "loss", loss=losses.NCALoss(0.3))
    train(small(), tmp_path / "method", method=lambda context: LossMethod(context, losses.NCALoss(0.3)))
    sets = {"train_set": data.load("glyphs"), "val_set": data.load("glyphs", "val")}
    train(small(method="nca", temperature=0.3), tmp_path / "sets", **sets)
    whole = read_tensors(tmp_path / "named" / "state.safetensors")
    for name in ("loss", "method", "sets"):
        other = read_tensors(tmp_path / name / "state.safetensors")
        assert all(torch.equal(whole[each], other[each]) for each in whole), name


def test_a_run_with_objects_goes_on_with_them(tmp_path):
    def go(updates, **more):
        torch.manual_seed(0)
        given = {"network": rankshot.wrap(trunk(), preprocess=GLYPHS), "loss": losses.TripletLoss()}
        return train(small(updates=updates), tmp_path / "run", **{**given, **more})

    go(6)
    assert go(12, resume=True).update == 12
    for name, given in (("network", "network="), ("loss", "loss= or method=")):
        with pytest.raises(ValueError, match=rf"as an object: give `train` the same by {given}"):
            go(14, resume=True, **{name: None})
    with pytest.raises(FileExistsError, match="exists already"):
        go(14)
    with pytest.raises(FileExistsError, match="exists already"):
        train(small(updates=14), tmp_path / "run")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": losses.NCALoss(), "method": LossMethod}, "a loss is a method by itself: give one of them"),
        ({"loss": 3}, "a loss is an object that is called with embeddings and labels, got 3"),
        ({"loss": losses.NCALoss}, "a loss is an object that is called with embeddings and labels, got <class"),
        (
            {"loss": lambda embeddings, labels: embeddings.sum(1)},
            r"must be one number, a tensor of shape \(\), got \(32,\)",
        ),
        ({"loss": lambda embeddings, labels: 0.5}, r"must be one number, a tensor of shape \(\), got float"),
        ({"loss": lambda embeddings, labels: torch.zeros(())}, "has no gradient: it does not depend on the embeddings"),
        ({"method": "nca"}, "a method is a rankshot.methods.Method, or makes one of a Context, got 'nca'"),
        ({"network": "conv4"}, "network must be a torch.nn.Module, got 'conv4'"),
        ({"train_set": [1]}, r"train_set must be a rankshot.data.ImageSet, got \[1\]"),
        (
            {"train_set": "glyphs", "val_set": "glyphs"},
            "is in train_set and in val_set: validate on classes that it does not",
        ),
        ({"callbacks": [print]}, "callbacks and progress must be objects of rankshot.training.Callback"),
        ({"progress": False}, "callbacks and progress must be objects of rankshot.training.Callback"),
        ({"method": lambda context: 3}, "a method is a rankshot.methods.Method, or makes one of a Context, got 3"),
        ({"network": nn.Flatten()}, r"Flatten does not tell what pictures it takes: rankshot\.wrap\(network, preprocess="),
        ({"train_set": "glyphs"}, "there are no classes to validate on: give val_set too, or set validate_every to 0"),
    ],
)
def test_objects_that_are_none(tmp_path, given, message):
    given = {name: data.load("glyphs") if each == "glyphs" else each for name, each in given.items()}
    with pytest.raises((TypeError, ValueError), match=message):
        train(SMALL, tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_a_network_of_one_s_own_is_not_mirrored_in_silence(tmp_path):
    network = rankshot.wrap(trunk(), preprocess=GLYPHS)
    with pytest.raises(ValueError, match="mirror is for networks by name"):
        train(small(mirror=True, augment=("flip",)), tmp_path / "run", network=network)
    with pytest.raises(TypeError, match=r"config must be a TrainConfig, got \{\}"):
        train({}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_it_begins_with_the_weights_of_another_run_of_it(tmp_path):
    def mine():
        return rankshot.wrap(trunk(), preprocess=GLYPHS)

    train(small(updates=3), tmp_path / "one", network=mine())
    train(small(updates=1, init=str(tmp_path / "one")), tmp_path / "two", network=mine())
    first, start = (read_tensors(tmp_path / name) for name in ("one/model.safetensors", "two/start.safetensors"))
    assert all(torch.equal(first[name], start[name]) for name in first)


def test_stopped_in_its_last_update(tmp_path):
    """Who runs one after another wants the others stopped too."""

    class Stop(Callback):
        def updated(self, update, loss, batch_map, per_second):
            if update == 8:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="stopped after update 8"):
        train(small(updates=8), tmp_path / "run", callbacks=[Stop()])
    assert train(small(updates=8), tmp_path / "run", resume=True).update == 8


def test_sizes_that_do_not_fit(tmp_path):
    network = rankshot.wrap(trunk(), preprocess=Preprocess(1, 20, 20))
    with pytest.raises(ValueError, match=r"the network takes images of 1x20x20 .*, and these are 1x28x28"):
        train(SMALL, tmp_path / "run", network=network)
    small_ones = data.ImageSet(np.zeros((8, 1, 20, 20), np.uint8), np.arange(8) // 4, ("a", "b"))
    with pytest.raises(ValueError, match="images to learn from are 1x28x28, those to validate on 1x20x20: make them alike"):
        train(SMALL, tmp_path / "run", val_set=small_ones)
    with pytest.raises(ValueError, match=r"size is 20, and the images of glyphs are 28x28: .*config_for"):
        train(small(size=20), tmp_path / "run")


def test_only_what_is_not_finite_is_called_diverged(tmp_path):
    """An error of a loss of one's own comes out as it is."""

    def broken(embeddings, labels):
        raise ValueError("my own mistake")

    with pytest.raises(ValueError, match=r"^my own mistake$"):
        train(SMALL, tmp_path / "run", loss=broken)

    def not_finite(embeddings, labels):
        raise NotFinite("embeddings must be finite")

    with pytest.raises(ValueError, match="training broke down at update 1: embeddings must be finite"):
        train(SMALL, tmp_path / "other", loss=not_finite)
    assert not (tmp_path / "run").exists()  # a mistake is found before anything is written


def test_it_ends_when_nothing_gets_better(tmp_path):
    """A learning rate of nearly nothing: the first validation stays the best."""
    config = small(updates=200, validate_every=4, patience=3, learning_rate=1e-30)
    status = train(config, tmp_path / "run")
    assert (status.update, status.best_update) == (16, 4)
    assert train(config, tmp_path / "run", resume=True) == status  # it is done
    assert train(config.changed(patience=5), tmp_path / "run", resume=True).update == 24


@pytest.mark.slow
def test_it_ends_in_time(tmp_path):
    began = time.perf_counter()
    config = small(updates=10**6, validate_every=10**6, minutes=0.02)
    status = train(config, tmp_path / "run")
    assert time.perf_counter() - began < 30
    assert 0 < status.update < 10**6
    assert status.total_seconds >= 1.2
    assert read_metrics(tmp_path / "run")[-1]["update"] == status.update  # measured where it ends
    assert status_of(tmp_path / "run") == status
    assert train(config, tmp_path / "run", resume=True) == status  # it is done
    assert train(config.changed(minutes=0.04), tmp_path / "run", resume=True).update > status.update


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    train(small(updates=8, logger=("tensorboard",)), tmp_path / "run")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    written = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    written.Reload()
    assert [(each.step, pytest.approx(each.value)) for each in written.Scalars("train/loss")] == [
        (line["update"], line["loss"]) for line in read_metrics(tmp_path / "run") if "loss" in line
    ]
    assert "validation/retrieval 20-way" in written.Tags()["scalars"]


def test_a_logger_that_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setattr("rankshot.training.callbacks.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"the logger 'wandb' needs a package .*: pip install 'rankshot\[wandb\]'"):
        loggers_for(["wandb"])
    with pytest.raises(ImportError, match="tensorboard"):
        train(small(logger=("tensorboard",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_context_tells_what_a_method_is_made_for(tmp_path):
    seen = []

    def made(context):
        seen.append(context)
        return LossMethod(context, losses.NCALoss())

    train(small(updates=1, filters=8), tmp_path / "run", method=made)
    assert seen == [Context(embedding_dim=8, classes=419, batch_classes=4, batch_size=32)]
    assert TrainConfig.from_json(tmp_path / "run" / "config.json").method.name == "made"


def test_pictures_must_be_as_the_network_says(tmp_path):
    """Else it would be asked about others later than those that it has learned from."""
    network = rankshot.wrap(trunk(), preprocess=Preprocess(1, 28, 28))
    with pytest.raises(ValueError, match="wants pictures 28x28 grey, and these were made ready 28x28 grey, dark"):
        train(small(updates=2), tmp_path / "run", network=network)
    assert not (tmp_path / "run").exists()
    images = data.load("glyphs", "train")  # of sets that are given only the size is known
    train(small(updates=2, validate_every=0), tmp_path / "run", network=network, train_set=images)


def test_pictures_of_one_s_own_are_made_ready_for_a_network_that_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "root"))
    class_folders(tmp_path / "photos", classes=10, per_class=4)
    padded = Preprocess(3, 20, 24, fit="pad", mean=(0.5,) * 3)
    network = rankshot.wrap(nn.Sequential(nn.Flatten(), nn.Linear(3 * 20 * 24, 4)), preprocess=padded)
    settings = {"data": str(tmp_path / "photos"), "updates": 2, "device": "cpu"}
    config = rankshot.config_for(network=network, tell=lambda text: None, **settings)
    assert data.preprocess_of(config.data.name) == Preprocess(3, 20, 24, fit="pad")
    train(config, tmp_path / "run", network=network)
    assert rankshot.Embedder(rankshot.models.from_pretrained(tmp_path / "run", network=network)).preprocess == padded
    with pytest.raises(ValueError, match="size is 32, and the network takes pictures 24x20 in colour, padded, mean"):
        rankshot.config_for(network=network, size=32, **settings)
    stretched = rankshot.config_for(data=str(tmp_path / "photos"), updates=2, tell=lambda text: None)
    with pytest.raises(ValueError, match="the network takes images of 3x20x24"):
        train(stretched, tmp_path / "other", network=network)


def test_another_mean_cannot_go_on(tmp_path):
    def network(mean):
        return rankshot.wrap(trunk(), preprocess=replace(GLYPHS, mean=(mean,), deviation=(0.2,)), name="mine")

    train(small(updates=2, validate_every=0), tmp_path / "run", network=network(0.5))
    with pytest.raises(ValueError, match=r"was begun with pictures .* mean 0\.5, .* and cannot go on with .* mean 0\.1"):
        train(small(updates=4, validate_every=0), tmp_path / "run", network=network(0.1), resume=True)


def test_what_is_frozen_and_its_mode_are_put_back(tmp_path):
    network = rankshot.wrap(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten()), preprocess=GLYPHS).eval()
    train(small(updates=2, validate_every=0, frozen=("0",)), tmp_path / "one", network=network)
    assert not network.training
    assert all(parameter.requires_grad for parameter in network.parameters())
    before = network[0].weight.clone()
    train(small(updates=2, validate_every=0), tmp_path / "two", network=network)
    assert not torch.equal(network[0].weight, before)


def test_a_run_that_ended_before_its_first_checkpoint_begins_with_the_same_weights(tmp_path):
    def network(seed):
        torch.manual_seed(seed)
        return rankshot.wrap(trunk(), preprocess=GLYPHS, name="mine")

    config = small(updates=4, validate_every=0)
    train(config, tmp_path / "whole", network=network(0))
    with pytest.raises(RuntimeError, match="mine"):
        train(config, tmp_path / "cut", network=network(0), callbacks=[Fails("started")])
    train(config, tmp_path / "cut", network=network(1), resume=True)
    whole, cut = (read_tensors(tmp_path / name / "state.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())


def test_layers_that_share_their_weights(tmp_path):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = self.other = nn.Conv2d(1, 1, 3, stride=2)

        def forward(self, images):
            return self.other(self.one(images)).flatten(1)

    network = rankshot.wrap(Shared(), preprocess=GLYPHS)
    train(small(updates=2), tmp_path / "run", network=network)
    found = rankshot.from_pretrained(tmp_path / "run", network=Shared)  # by its class
    assert found.one.weight is found.other.weight
    assert torch.equal(found.one.weight, read_tensors(tmp_path / "run" / "model.safetensors")["other.weight"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_weights_that_cannot_learn(tmp_path, dtype):
    network = rankshot.wrap(trunk().to(dtype), preprocess=replace(GLYPHS, mean=(0.5,)))
    with pytest.raises(ValueError, match=f"must be float32 to learn, and 'network.0.weight' is {dtype}"):
        train(small(updates=2), tmp_path / "run", network=network)
    assert not (tmp_path / "run").exists()


def test_a_network_that_gives_something_else_in_training(tmp_path):
    class Inception(nn.Sequential):
        def forward(self, images):
            return (super().forward(images), None) if self.training else super().forward(images)

    network = rankshot.wrap(Inception(trunk()), preprocess=GLYPHS)
    with pytest.raises(ValueError, match="in training the network gives a tuple, and not embeddings"):
        train(small(updates=2), tmp_path / "run", network=network)
    assert not (tmp_path / "run").exists()


def test_sentences_about_what_was_given(tmp_path):
    config = small(updates=2, validate_every=0)
    given = {"network": rankshot.wrap(trunk(), preprocess=GLYPHS), "loss": losses.NCALoss()}
    train(config, tmp_path / "run", train_set=data.load("glyphs", "train"), **given)
    recorded = TrainConfig.from_json(tmp_path / "run" / "config.json")
    with pytest.raises(ValueError, match="unknown setting 'temperature': NCALoss was given from Python"):
        recorded.changed(temperature=0.3)
    with pytest.raises(ValueError, match="the images were given from Python: give them again, as train_set"):
        train(recorded, tmp_path / "run", resume=True, **given)
    with pytest.raises(ValueError, match="was begun with data 'given from Python' and cannot go on with 'glyphs'"):
        train(config, tmp_path / "run", resume=True, **given)
    with pytest.raises(ValueError, match="was given from Python: say what to measure on with --data"):
        report.protocol_for([tmp_path / "run"])
    with pytest.raises(TypeError, match="callbacks must be a list of"):
        train(config, tmp_path / "other", callbacks=None)
