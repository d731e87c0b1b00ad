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

from rankshot import data, from_pretrained
from rankshot.cli.main import main
from rankshot.gallery.pictures import pixels_of
from rankshot.models.pretrained import read_tensors

FEW = ["--updates", "2", "--device", "cpu"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


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
    assert re.search(rf"{told} classes of photos-\w+, 300 episodes a task", out)


def test_images_as_the_first_weights_want_them(place, capsys):
    class_folders(place / "scans", classes=10, per_class=4)
    options = ["--data", "scans", "--init", "conv4-omniglot", "--validate-every", "0", "--device", "cpu"]
    assert main(["train", *options, "--updates", "1", "--run", "run"]) == 0
    out = capsys.readouterr().out
    assert "images are made ready as conv4-omniglot wants them, 28x28 grey, dark ink made bright" in out
    config = config_of(place / "run")
    assert config["images"] == {"shape": [1, 28, 28], "invert": True}
    seen = data.load(config["data"], "train")
    expected = pixels_of(place / "scans" / seen.classes[0] / "0.png", (1, 28, 28), invert=True)
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


EPISODIC = ["matching", "matching-fce", "prototypical", "maml", "meta-lstm", "memory", "nearest", "baseline++"]


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
        assert "lies within the images of .: name a folder elsewhere with --run" in capsys.readouterr().err
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
    assert "has changed since ../run was begun: its training classes are others now" in capsys.readouterr().err


def test_killed_before_its_first_checkpoint_it_still_begins_with_those_weights(place, rankshot):
    """A run folder that has its settings and nothing else yet."""
    class_folders(place / "photos", classes=4)
    options = ["--data", "photos", "--init", "conv4-cub", *FEW, "--learning-rate", "1e-30"]
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
    (start,) = (each for name, each in from_pretrained("conv4-cub").named_parameters() if name.endswith("0.0.weight"))
    assert torch.equal(other["0.0.weight"], start)


def test_the_weights_that_it_began_with_may_go(place, capsys):
    class_folders(place / "photos", classes=4)
    assert main(["export", "conv4-cub", "start"]) == 0
    assert main(["train", "--data", "photos", "--init", "start", *FEW, "--run", "run"]) == 0
    shutil.move(place / "start", place / "gone")
    assert main(["train", "--run", "run", "--resume", "--updates", "4"]) == 0
    assert main(["train", "--data", "photos", "--run", "run", "--resume", "--updates", "5"]) == 0


def test_weights_that_are_not_there(place, capsys):
    class_folders(place / "photos", classes=4)
    assert main(["train", "--data", "photos", "--init", "conv4-cup", *FEW, "--run", "run"]) == 1
    told = capsys.readouterr().err
    assert "conv4-cup holds no network" in told
    assert "conv4-cub" in told
    assert not (place / "run").exists()
    assert not (place / "root").exists()  # nothing was prepared for it either


def test_the_card_tells_the_terms_of_both(place):
    class_folders(place / "photos", classes=4)
    assert main(["train", "--data", "photos", "--init", "conv4-cub", *FEW, "--run", "run"]) == 0
    assert main(["train", "--data", "photos", "--init", "run", *FEW, "--run", "again"]) == 0
    for name, start in (("run", "conv4-cub"), ("again", "run")):
        card = (place / name / "README.md").read_text()
        assert "Images of the person who trained it" in card
        assert f"It began with the weights of {start}: " in card
        assert "CUB-200-2011 (Wah et al., 2011): its terms allow non-commercial research" in card
