"""Classes from a folder of examples, image by image."""

import csv
import json
import os
import shlex
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

from rankshot import FewShotClassifier
from rankshot.cli.main import main

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 40), "blue": (30, 40, 210)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        for number in range(4):
            place = tmp_path / ("support" if number < (3 if name == "red" else 2) else "new") / name
            place.mkdir(parents=True, exist_ok=True)
            pixels = np.clip(np.array(colour) + random.integers(-25, 25, (70, 90, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_csv_and_json(folder, capsys):
    command = ["classify", "new", "--support", "support", "--model", "conv4-cub"]
    assert main([*command, "-o", "out.csv"]) == 0
    with (folder / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    for row in rows:
        assert row["label"] == row["image"].split("/")[1]
        assert row["example"].startswith(f"support/{row['label']}/")
        assert 1 / 3 < float(row["probability"]) <= 1
    assert main([*command, "--format", "json", "--rule", "prototype"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["label"] for each in found] == [row["label"] for row in rows]


def test_how_often_it_was_right(folder, capsys):
    """By the names of folders, on standard error: the answers are as they are without."""
    shutil.copy(folder / "new" / "red" / "3.png", folder / "new" / "green" / "10.png")  # to be taken for red
    shutil.copy(folder / "new" / "red" / "3.png", folder / "new" / "odd.png")
    command = ["classify", "new", "--support", "support", "--model", "conv4-cub", "--rule", "nearest"]
    assert main(command) == 0
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "accuracy 83.3 %: 5 of the 6 images in folders that are named as classes",
        "not counted, since they lie elsewhere: 1",
        "  class  images  right  most often taken for",
        "  blue        2      2",
        "  green       3      2  red (1)",
        "  red         1      1",
    ]
    names = [row["image"] for row in csv.DictReader(told.out.splitlines())]
    assert names == [f"new/{name}.png" for name in ("blue/2", "blue/3", "green/2", "green/3", "green/10", "odd", "red/3")]
    assert main([*command, "--threshold", "1", "--unknown", "no idea", "--format", "json"]) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["label"] for line in told.out.splitlines()] == ["no idea"] * 7
    assert "6 of them were answered 'no idea'\n" in told.err
    assert "  class  images  right  unknown  most often taken for\n  blue        2      0        2\n" in told.err
    (folder / "new" / "green").rename(folder / "new" / "some")  # most images tell nothing now
    assert main(command) == 0
    assert capsys.readouterr().err == ""


def test_taught_once_and_saved(folder, capsys):
    command = ["classify", "new", "--support", "support", "--model", "conv4-cub", "--reject", "0.1", "--save", "kept"]
    assert main(command) == 0
    told = capsys.readouterr()
    assert told.err.endswith("rankshot: the classifier is saved: next time, --support kept\n")
    assert main(["classify", "new", "--support", "kept"]) == 0
    assert capsys.readouterr().out == told.out
    before = sorted(folder.rglob("*"))
    for options, message in (
        (command, "kept exists already: name a new folder"),
        (["classify", "new", "--support", "kept", "--save", "more"], "the classifier in kept is saved already"),
        (["classify", "new", "--support", "nowhere", "--save", "more"], "there is no folder nowhere"),
        ([*command[:-1], "more", "-o", "nowhere/out.csv"], "nowhere/out.csv: No such file or directory"),
    ):
        assert main(options) == 1
        told = capsys.readouterr()
        assert message in told.err
        assert told.out == ""
    assert sorted(folder.rglob("*")) == before


def test_with_a_classifier_that_was_saved(folder, capsys):
    command = ["classify", "new", "--support"]
    assert main([*command, "support", "--model", "conv4-cub", "--rule", "nearest"]) == 0
    expected = capsys.readouterr().out
    paths = sorted((folder / "support").glob("*/*.png"))
    classifier = FewShotClassifier("conv4-cub", rule="nearest").fit(
        [path.relative_to(folder) for path in paths], [path.parent.name for path in paths]
    )
    classifier.save_pretrained("kept")
    assert main([*command, "kept"]) == 0
    assert capsys.readouterr().out == expected
    FewShotClassifier().fit(np.eye(3), list("abc")).save_pretrained("vectors")
    assert main([*command, "vectors"]) == 1
    assert "was taught with vectors and has no network for images" in capsys.readouterr().err


def test_a_saved_classifier_has_its_own_settings(folder, capsys):
    paths = sorted((folder / "support").glob("*/*.png"))
    FewShotClassifier("conv4-cub", threshold=0.999).fit(paths, [path.parent.name for path in paths]).save_pretrained("kept")
    command = ["classify", "new", "--support", "kept"]
    usual = (("model", "conv4-mini-imagenet"), ("rule", "ap"))
    for name, value in (("model", "conv4-omniglot"), ("rule", "nearest"), ("reject", "0.2"), ("threshold", "0.1"), *usual):
        assert main([*command, f"--{name}", value]) == 1
        assert (
            f"the classifier in kept keeps the {name} that it was taught with: leave out --{name}"
            in capsys.readouterr().err
        )
    assert main(command) == 0
    told = capsys.readouterr()
    assert "none of these below a nearness of 0.999; " in told.err
    assert {row["label"] for row in csv.DictReader(told.out.splitlines())} <= {*COLOURS, "none of these"}
    assert "none of these" in told.out


def test_where_the_answers_go(folder, capsys):
    """Into a pipe, and to where a link leads."""
    command = ["classify", "new", "--support", "support", "--model", "conv4-cub"]
    assert main(command) == 0
    expected = capsys.readouterr().out
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        assert main([*command, "-o", "pipe"]) == 0
        assert reader.communicate()[0] == expected
    (folder / "elsewhere").mkdir()
    (folder / "link.csv").symlink_to(folder / "elsewhere" / "answers.csv")
    assert main([*command, "-o", "link.csv"]) == 0
    assert (folder / "link.csv").is_symlink()
    assert (folder / "elsewhere" / "answers.csv").read_text() == expected


def test_a_link_that_lies_in_wait_is_not_written_through(folder):
    """Where an unfinished file was to be expected once."""
    (folder / "precious").write_text("mine")
    (folder / ".out.csv.partial").symlink_to(folder / "precious")
    assert main(["classify", "new", "--support", "support", "--model", "conv4-cub", "-o", "out.csv"]) == 0
    assert (folder / "precious").read_text() == "mine"
    assert not (folder / "out.csv").is_symlink()


@pytest.mark.slow
def test_a_stream_goes_on_where_it_stands(folder, rankshot):
    command = shlex.join(map(str, rankshot("classify", "new/red", "--support", "support", "--model", "conv4-cub", "-o")))
    subprocess.run(["sh", "-c", f"{{ echo before; {command} /dev/stdout; echo after; }} > out.csv"], check=True)
    lines = (folder / "out.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["before", "image", "new/red/3.png", "after"]
    subprocess.run(["sh", "-c", f"{command} /dev/fd/1 >> out.csv"], check=True)
    assert (folder / "out.csv").read_text().splitlines() == [*lines, *lines[1:3]]


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.slow
def test_any_name_in_any_locale(folder, rankshot, locale):
    """What is piped has the bytes of the names; what a person sees has nothing that a terminal would obey."""
    name = b"new/\xff caf\xc3\xa9\x1b[31m.png"
    os.rename(folder / "new" / "red" / "3.png", name)
    os.rename(folder / "support" / "red", os.fsdecode(b"support/r\xe9d"))
    (folder / "new" / os.fsdecode(b"broken\x1b[5m\xff.png")).write_bytes(b"nothing")
    command = rankshot("classify", "new", "--support", "support", "--model", "conv4-cub")
    done = subprocess.run(command, capture_output=True, env={**os.environ, **locale}, check=False)
    assert done.returncode == 1
    assert name + b",r\xe9d," in done.stdout
    first, summary, *_ = told = done.stderr.splitlines()
    assert first == b"rankshot: new/broken\\x1b[5m\\xff.png: no image, or of an unknown kind"
    assert summary.startswith(b"accuracy ")
    assert all(line.decode("ascii").isprintable() for line in told)


def test_none_of_these_and_what_cannot_be_read(folder, capsys):
    random = np.random.default_rng(1)
    Image.fromarray(random.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(folder / "new" / "noise.png")
    (folder / "new" / "broken.jpg").write_bytes(b"nothing")
    assert main(["classify", "new", "--support", "support", "--model", "conv4-cub", "--reject", "0.1"]) == 1
    told = capsys.readouterr()
    assert "new/broken.jpg: no image" in told.err
    assert "% of the examples would be rejected, and" in told.err
    answers = {row["image"]: row["label"] for row in csv.DictReader(told.out.splitlines())}
    assert answers["new/noise.png"] == "none of these"
    assert answers["new/blue/3.png"] in ("blue", "none of these")


def test_bad_use(folder, capsys):
    (folder / "support" / "odd").mkdir()
    (folder / "support" / "odd" / "x.png").write_bytes(b"nothing")
    (folder / "kept.csv").write_text("as it was")
    for command, message in (
        (["new", "--support", "nowhere"], "there is no folder nowhere"),
        (["new", "nowhere", "--support", "new", "-o", "kept.csv"], "there is no nowhere"),
        (["--support", "new"], "give images, or folders of them"),
        (["new", "--support", "support", "--model", "conv4-cub"], "of class 'odd' in support no image can be read"),
        (["new", "--support", "new", "--format", "xml"], "unknown format 'xml': there is 'csv', 'json'"),
        (["new", "--support", "new", "--model", "elsewhere"], "elsewhere holds no network"),
    ):
        assert main(["classify", *command]) == 1
        assert message in capsys.readouterr().err
    assert (folder / "kept.csv").read_text() == "as it was"


def test_nothing_to_classify(folder, capsys):
    (folder / "empty").mkdir()
    command = ["classify", "empty", "--support", "support", "--model", "conv4-cub"]
    assert main(command) == 0
    assert "rankshot: there are no images in empty" in capsys.readouterr().err
    assert main(["gallery", "add", "g.gal", "empty", "--model", "conv4-cub"]) == 0
    assert "rankshot: there are no images in empty" in capsys.readouterr().err


@pytest.mark.slow
def test_the_strongest_by_name(folder, monkeypatch):
    monkeypatch.setattr("rankshot.models.strongest.is_installed", lambda name: False)
    classifier = FewShotClassifier("strongest").fit([*(folder / "support").glob("*/*.png")], [0, 0, 0, 1, 1, 2, 2])
    assert classifier._embedder().name == "resnet12-mini-imagenet"
