"""`rankshot data`, and training on one's own folder."""

import re
import subprocess

import pytest
from pictures import class_folders, encoded, pixels
from PIL import Image

from rankshot import data
from rankshot.cli.main import main


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "root"))
    return class_folders(tmp_path / "mine", classes=15, per_class=12)


def test_dark_ink_becomes_bright(mine, tmp_path, data_root):
    root = tmp_path / "root"
    assert main(["data", "prepare", str(mine), "--size", "16", "--invert"]) == 0
    plain, inverted = (data.prepared(str(mine), root, size=16, **options) for options in ({}, {"invert": True}))
    one, other = (data.load(place.name, "train", root).images for place in (plain, inverted))
    assert (other == 255 - one).all()
    assert [data.preprocess_of(place.name, root).invert for place in (plain, inverted)] == [False, True]
    assert data.preprocess_of("glyphs", data_root).invert


def test_prepare_list_verify_show(mine, tmp_path, capsys):
    assert main(["data", "prepare", str(mine), "--size", "32", "--grey"]) == 0
    told = capsys.readouterr().out
    assert "mine  180/180" in told
    assert "mine: 180 images of 1x32x32, 15 classes" in told
    assert "train  9 classes with 12 images each, 108 in all" in told
    name = told.split("--data ")[1].strip()
    assert main(["data", "list"]) == 0
    assert "mine: 180 images" in capsys.readouterr().out
    assert main(["data", "verify"]) == 0
    assert "as it was prepared" in capsys.readouterr().out
    assert main(["data", "show", name, "-o", str(tmp_path / "sheet.png"), "--classes", "3", "--split", "val"]) == 0
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.height == 3 * (64 + 4) + 4


def test_prepared_twice_is_prepared_once(mine, capsys):
    for _ in range(2):
        assert main(["data", "prepare", str(mine)]) == 0
    assert capsys.readouterr().out.count("180/180") == 1


def test_flipped_byte(mine, tmp_path, capsys):
    assert main(["data", "prepare", str(mine)]) == 0
    (path,) = (tmp_path / "root").glob("*/images.bin")
    content = bytearray(path.read_bytes())
    content[999] ^= 4
    path.write_bytes(content)
    assert main(["data", "verify"]) == 1
    assert f"{path} is not as it was prepared" in capsys.readouterr().err


def test_strict_and_not(mine, tmp_path, capsys):
    (mine / "c1" / "3.png").write_bytes(encoded(pixels())[:40])
    assert main(["data", "prepare", str(mine), "--strict"]) == 1
    assert f"{mine / 'c1' / '3.png'} is no image that can be read" in capsys.readouterr().err
    assert list((tmp_path / "root").iterdir()) == []
    assert main(["data", "prepare", str(mine)]) == 0
    assert "1 files were left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["prepare", "nothing"], "unknown data set 'nothing': there is 'glyphs', 'omniglot'"),
        (["prepare", "cub"], "cub is not prepared yet."),
        (["prepare", "omniglot", "--from", "nothing.zip"], "there is no nothing.zip"),
        (["prepare", "mini-imagenet", "--from", "mine"], "mini-ImageNet has 100 classes, but 100 are missing"),
        (["show", "mine", "-o", "nowhere/sheet.png"], "nowhere/sheet.png: No such file or directory"),
        (["show", "mine", "-o", "sheet.png", "--split", "dev"], "mine has no split 'dev'"),
        (["show", "mine", "-o", "sheet.png", "--classes", "0"], "classes must be a whole number from 1 to 500, got 0"),
        (["show", "mine", "-o", "sheet.png", "--images", "0"], "images must be a whole number from 1 to 500, got 0"),
        (["show", "mine", "-o", "sheet.png", "--seed", "-1"], "seed must be a whole number from 0 to 4,294,967,295, got"),
        (["show", "mine", "-o", "sheet.xyz"], "unknown file extension"),
        (["prepare", "mine", "--root", "mine/c0/0.png"], "mine/c0/0.png"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(mine, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    assert main(["data", *options]) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("rankshot: ")]
    assert len(told) == 1
    assert message in told[0]


def test_from_a_folder_to_a_trained_network(mine, tmp_path, capsys):
    """My folder -> train -> evaluate, in two commands."""
    small = ["--filters", "8", "--batch-classes", "4", "--batch-size", "24", "--updates", "6", "--device", "cpu"]
    run = tmp_path / "run"
    assert main(["train", "--data", str(mine), "--run", str(run), *small, "--augment", "flip", "crop", "jitter"]) == 0
    told = capsys.readouterr().out
    assert "mine  180/180" in told
    assert "3-way: 1-shot" in told  # as many validation classes as there are
    assert main(["evaluate", str(run), "--ways", "3", "--shots", "1", "--episodes", "10"]) == 0
    assert "1-shot 3-way" in capsys.readouterr().out
    assert (run / "report.html").exists()


def test_a_folder_without_validation_classes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "root"))
    source = class_folders(tmp_path / "mine" / "train", classes=5, per_class=8).parent
    small = ["--filters", "8", "--batch-classes", "4", "--batch-size", "24", "--updates", "3", "--device", "cpu"]
    command = ["train", "--data", str(source), "--run", str(tmp_path / "run"), *small]
    assert main([*command, "--validate-every", "2"]) == 1
    told = "has no classes in split 'val', only in 'train': to train without validation, set validate_every to 0"
    assert told in capsys.readouterr().err
    assert main(command) == 0
    assert "there are 5 training classes of 8 images: --validate-every 0" in capsys.readouterr().out


@pytest.mark.slow
def test_omniglot_end_to_end(shared, tmp_path, rankshot, data_root):
    """The real images, by the commands that a user types; few updates."""
    zips = [shared / "omniglot" / f"images_{part}.zip" for part in ("background", "evaluation")]
    root = ["--root", data_root]
    done = subprocess.run(
        rankshot("data", "prepare", "omniglot", "--from", *zips, *root), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "omniglot: 32460 images of 1x28x28, 1623 classes" in done.stdout
    small = ["--data", "omniglot", "--rotations", "--filters", "16", "--updates", "20", "--validation-episodes", "10"]
    done = subprocess.run(
        rankshot("train", "--run", tmp_path / "run", *small, *root), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        rankshot("evaluate", tmp_path / "run", "--episodes", "20"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    accuracy = {task: float(value) for task, value in re.findall(r"^(\S+ \d+-way) .*? ([0-9.]+) ±", done.stdout, re.M)}
    assert accuracy["1-shot 5-way"] > 40  # twice chance, on characters that it has never seen
    assert accuracy["retrieval 20-way"] > 10
