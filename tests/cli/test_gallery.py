"""Galleries from the shell: add, look, search, delete, rescue."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rankshot.cli.main import main
from rankshot.gallery.segment import SEGMENT

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 40), "blue": (30, 40, 210)}


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(4):
            noise = random.integers(-25, 25, (70, 90, 3))
            pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{number}.jpg")
    return tmp_path


def test_from_a_folder_to_what_is_alike(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "pictures" / "broken.jpg").write_bytes(b"nothing")
    assert main(["gallery", "add", "g", "pictures", "--model", "conv4-cub"]) == 1
    told = capsys.readouterr()
    assert "g: 12 added, 0 there already, 1 unreadable; 12 in all" in told.out
    assert "pictures/broken.jpg: no image" in told.err
    (folder / "pictures" / "broken.jpg").unlink()
    Image.new("RGB", (50, 50), (250, 250, 0)).save(folder / "pictures" / "yellow.png")
    assert main(["gallery", "add", "g", "pictures", "--metadata", "kind=late"]) == 0  # again, when it has grown
    assert "g: 1 added, 12 there already, 0 unreadable; 13 in all" in capsys.readouterr().out
    Image.new("RGB", (50, 50), (250, 240, 0)).save(folder / "pictures" / "yellow.png")  # finding 7: changed in place
    assert main(["gallery", "add", "g", "./pictures//yellow.png"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "g: 0 added, 0 there already, 0 unreadable; 13 in all",
        "  1 had changed since they were added, and were embedded anew",
    ]

    assert main(["search", "pictures/red/1.jpg", "--gallery", "g", "-k", "4", "--sheet", "out.png"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[1] == "pictures/red/1.jpg"
    assert all("pictures/red/" in line for line in lines)
    with Image.open("out.png") as sheet:
        assert sheet.size[0] > 500
    both = ["pictures/red/1.jpg", "pictures/red/2.jpg"]
    assert main(["search", *both, "--gallery", "g", "--where", "kind=late", "--json"]) == 0
    (hit,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (hit["id"], hit["metadata"]) == ("pictures/yellow.png", {"kind": "late"})

    assert main(["gallery", "delete", "g", "pictures/yellow.png"]) == 0
    assert "g: 1 deleted; 12 in all" in capsys.readouterr().out
    assert main(["gallery", "delete", "g", "pictures/yellow.png"]) == 1
    assert "there is no 'pictures/yellow.png' among the 12 images" in capsys.readouterr().err
    assert main(["gallery", "info", "g", "--verify"]) == 0
    told = capsys.readouterr().out
    assert "g: 12 images, 1024 dimensions" in told
    assert "seen by conv4-cub" in told
    assert "everything is as it was written" in told


def test_damage(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    for name in COLOURS:
        assert main(["gallery", "add", "g", f"pictures/{name}", "--model", "conv4-cub"]) == 0
    with (folder / "g" / SEGMENT).open("r+b") as file:
        file.seek(9)
        file.write(b"?")
    capsys.readouterr()
    assert main(["gallery", "info", "g", "--verify"]) == 1
    assert "images 0 to 3 are damaged" in capsys.readouterr().err
    assert main(["search", "pictures/red/1.jpg", "--gallery", "g"]) == 1
    assert "What is intact can be rescued" in capsys.readouterr().err
    assert main(["gallery", "rescue", "g", "new"]) == 1
    told = capsys.readouterr()
    assert "new: 8 images" in told.out
    assert "images 0 to 3 are damaged" in told.err


def test_names_that_are_no_text(folder, capsys, monkeypatch):
    """Bytes that are not UTF-8, and what a terminal would obey."""
    monkeypatch.chdir(folder)
    names = [os.fsdecode(b"nasty/\xff\xfe.jpg"), "nasty/\x1b[31mred.jpg", "nasty/\u202egnp.jpg", "nasty/a\nb.jpg"]
    (folder / "nasty").mkdir()
    for name in names:
        shutil.copy(folder / "pictures" / "red" / "1.jpg", name)
    Path(os.fsdecode(b"nasty/broken\x1b[5m\xff.jpg")).write_bytes(b"nothing")
    command = ["gallery", "add", "g", "nasty", "--model", "conv4-cub", "--metadata", "kind=\x1b[1m"]
    assert main(command) == 1
    told = capsys.readouterr()
    assert "4 added, 0 there already, 1 unreadable" in told.out
    assert "nasty/broken\\x1b[5m\\xff.jpg: no image" in told.err
    sheet = os.fsdecode(b"sheet\xff.png")
    assert main(["search", names[0], "--gallery", "g", "--sheet", sheet]) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert len(lines) == 4
    assert any("nasty/\\xff\\xfe.jpg" in line for line in lines)
    assert all(line.isprintable() for line in lines)
    assert Path(sheet).is_file()
    assert main(["search", names[0], "--gallery", "g", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {json.loads(line)["id"] for line in lines} == set(names)
    assert all(line.isprintable() for line in lines)
    printed = next(line for line in lines if "udcff" in line).split('"id": ')[1].split(', "similarity"')[0]
    assert main(["gallery", "delete", "g", printed, json.dumps(names[1])[1:-1], names[2]]) == 0
    assert "3 deleted; 1 in all" in capsys.readouterr().out
    assert main(["gallery", "delete", "g", names[1]]) == 1
    assert "there is no 'nasty/\\x1b[31mred.jpg'" in capsys.readouterr().err
    assert main(["gallery", "info", "g"]) == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["search", "x.jpg", "--gallery", "nowhere"], "nowhere is no gallery: there is no gallery.sqlite in it"),
        (["gallery", "add", "pictures", "pictures"], "pictures is no gallery"),
        (["gallery", "add", "g", "pictures", "--metadata", "late"], "metadata is NAME=VALUE each, got 'late'"),
        (["gallery", "add", "g", "nowhere"], "there is no nowhere"),
        (["gallery", "add", "g"], "give images, or folders of them"),
        (["search", "pictures/red/1.jpg", "--gallery", "no.db"], "no.db is no gallery: there is nothing of that name"),
    ],
)
def test_bad_use(folder, capsys, monkeypatch, command, message):
    monkeypatch.chdir(folder)
    assert main(command) == 1
    assert message in capsys.readouterr().err


def test_a_store_that_nobody_has_loaded(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["gallery", "add", "nosuch:g", "pictures"]) == 1
    assert capsys.readouterr().err.startswith("rankshot: there is no gallery store 'nosuch', only 'faiss'")
    assert not (folder / "nosuch:g").exists()
