"""Galleries from the shell: what was found is marked, and a gallery is adapted to its marks and classes."""

import json
import os
import re
import warnings

import numpy as np
import pytest
from pictures import write

from rankshot import Gallery
from rankshot.cli.main import main

CLASSES, ROWS, USEFUL, WIDTH = 6, 10, 3, 12


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A gallery of vectors whose classes differ in a few dimensions: the others are noise, and larger."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), ROWS)
    told = generator.normal(size=(CLASSES, USEFUL))[labels] + 0.1 * generator.normal(size=(len(labels), USEFUL))
    vectors = np.concatenate([told, 2 * generator.normal(size=(len(labels), WIDTH - USEFUL))], 1)
    with Gallery("g", dimensions=WIDTH) as gallery:
        ids = [f"v{row}" for row in range(len(labels))]
        gallery.add(vectors, ids, [{"kind": f"k{label}"} if label else {} for label in labels])
    return tmp_path


@pytest.mark.slow
def test_from_marks_and_classes_to_a_gallery_that_ranks_better(folder, capsys):
    assert main(["gallery", "mark", "g", "v0", "--right", "v1", '"v2"', "--wrong", "v50"]) == 0
    assert capsys.readouterr().out == "g: of v0, 2 marked as right and 1 as wrong\n"
    assert main(["gallery", "list", "g", "--where", "wrong=x", "--format", "json"]) == 0
    assert main(["gallery", "mark", "g", "v9", "--wrong", "v59"]) == 0
    assert main(["gallery", "delete", "g", "v59"]) == 0
    capsys.readouterr()
    with Gallery.open("g") as gallery:
        before = {item.id: item.metadata for item in gallery.items()}
    assert before["v0"] == {"right": ["v1", "v2"], "wrong": ["v50"]}
    assert main(["gallery", "adapt", "g", "--to", "new", "--label", "kind", "--seed", "1"]) == 0
    told = capsys.readouterr()
    first, gone, scores, last = told.out.splitlines()
    assert first == "g: 59 images, 49 of them of 5 classes, 3 pairs marked as right or wrong"
    assert gone == "  1 marks of images that are there no more were left out"
    words = scores.split()
    assert words[:2] == ["held-out", "mAP:"]
    assert float(words[4]) > float(words[2])
    assert last == "new: 59 images, adapted; g stays as it is"
    assert told.err == ""
    with Gallery.open("new") as gallery:
        assert {item.id: item.metadata for item in gallery.items()} == before
    assert main(["gallery", "info", "new", "--verify"]) == 0
    assert "  adapted: made of another gallery, where images and marks are to be added\n" in capsys.readouterr().out
    for command in (["adapt", "new", "--to", "third", "--label", "kind"], ["mark", "new", "v0", "--right", "v3"]):
        assert main(["gallery", *command]) == 1
        assert "adapted" in capsys.readouterr().err


def test_where_no_map_ranks_better_nothing_is_made(folder, capsys):
    with Gallery("easy", dimensions=3) as gallery:
        gallery.add(np.repeat(np.eye(3), 8, axis=0), metadata=[{"kind": kind} for kind in "abc" for _ in range(8)])
    assert main(["gallery", "adapt", "easy", "--to", "new", "--label", "kind"]) == 1
    told = capsys.readouterr()
    assert told.out == "easy: 24 images, 24 of them of 3 classes\n"
    assert told.err == "rankshot: held-out mAP is 100.00 as it is, and no map ranks better: nothing was made\n"
    assert not (folder / "new").exists()


def test_too_few_to_hold_any_out(folder, capsys):
    with Gallery("few", dimensions=3) as gallery:
        gallery.add(np.random.default_rng(0).normal(size=(4, 3)), list("abcd"))
    assert main(["gallery", "mark", "few", "a", "--right", "b"]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["gallery", "adapt", "few", "--to", "new"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "few: 4 images, 1 pairs marked as right or wrong",
        "  there is too little to hold any out: whether it ranks better is not known",
        "new: 4 images, adapted; few stays as it is",
    ]


def test_images_are_searched_and_added_as_before(folder, capsys):
    for number in range(6):
        write(folder / "photos" / f"{number}.png", number)
    assert main(["gallery", "add", "h", "photos", "--model", "conv4-omniglot", "--device", "cpu"]) == 0
    assert main(["gallery", "mark", "h", "photos/0.png", "--right", "photos/1.png", "--wrong", "photos/2.png"]) == 0
    assert main(["gallery", "adapt", "h", "--to", "new"]) == 0
    write(folder / "photos" / "late.png", 9)
    assert main(["gallery", "add", "new", "photos", "--device", "cpu"]) == 0
    assert "new: 1 added, 6 there already" in capsys.readouterr().out
    for name in ("0", "5", "late"):
        assert main(["search", f"photos/{name}.png", "--gallery", "new", "-k", "1", "--json", "--device", "cpu"]) == 0
        hit = json.loads(capsys.readouterr().out)
        assert (hit["id"], hit["similarity"]) == (f"photos/{name}.png", pytest.approx(1, abs=1e-4))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["mark", "nowhere", "a", "--right", "b"], "nowhere is no gallery"),
        (["mark", "g", "v0"], "give ids that were right, or wrong"),
        (["mark", "g", "v0", "--right", "none"], "there is no 'none' among the 60 images"),
        (["mark", "g", "v0", "--wrong", "v0"], "'v0' cannot be marked with itself"),
        (["adapt", "nowhere", "--to", "new", "--label", "kind"], "nowhere is no gallery"),
        (["adapt", "g", "--to", "g", "--label", "kind"], "g exists already: name a new folder"),
        (["adapt", "g", "--to", "new"], "holds no marks of what is right and wrong, .*: there are 'kind'"),
        (["adapt", "g", "--to", "new", "--label", "knid"], "no image of g has metadata 'knid': there are 'kind'"),
        (["adapt", "g", "--to", "new", "--label", "kind", "--right", "kind"], "the marks of 'v10' must be a list of ids"),
        (["adapt", "g", "--to", "new", "--label", "kind", "--seed", "-1"], "seed must be a whole number from 0 to"),
        (["adapt", "g", "--to", "new.db", "--label", "kind"], "new.db is in no folder: name a new folder for its network"),
    ],
)
def test_bad_use(folder, capsys, command, message):
    assert main(["gallery", *command]) == 1
    told = capsys.readouterr()
    assert re.search(message, told.err)
    assert told.out == ""
    assert os.listdir() == ["g"]
