"""Galleries from the shell: what is in one, near duplicates, another network."""

import csv
import json
import shutil

import pytest
from pictures import write

from rankshot import Gallery
from rankshot.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number in range(4):
        write(tmp_path / "photos" / f"{number}.png", number)
    shutil.copy("photos/1.png", "photos/copy.png")
    assert (
        main(["gallery", "add", "g", "photos", "--model", "conv4-cub", "--metadata", "kind=early", "--device", "cpu"]) == 0
    )
    write(tmp_path / "photos" / "late.png", 9)
    assert main(["gallery", "add", "g", "photos", "--metadata", "kind=late"]) == 0
    capsys.readouterr()
    return tmp_path


def test_what_is_in_it(folder, capsys):
    assert main(["gallery", "list", "g"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    names = ("0", "1", "2", "3", "copy", "late")
    assert [(row["id"], json.loads(row["metadata"])["kind"]) for row in rows] == [
        (f"photos/{name}.png", "late" if name == "late" else "early") for name in names
    ]
    assert main(["gallery", "list", "g", "--filter", "kind=late", "--format", "json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"id": "photos/late.png", "metadata": {"kind": "late"}}
    ]
    assert main(["gallery", "list", "g", "--where", "kind=early", "--limit", "2", "--format", "json"]) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["photos/0.png", "photos/1.png"]
    assert main(["gallery", "list", "g", "--filter", "kind=none"]) == 0
    assert capsys.readouterr().out == "id,metadata\n"


def test_near_duplicates(folder, capsys):
    assert main(["gallery", "duplicates", "g", "--above", "0.9999"]) == 0
    assert capsys.readouterr().out == "id,other,similarity\nphotos/1.png,photos/copy.png,1.0\n"
    assert main(["gallery", "duplicates", "g", "--above", "-1", "--format", "json"]) == 0
    pairs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(pairs) == 6 * 5 // 2
    assert pairs[0] == {"id": "photos/1.png", "other": "photos/copy.png", "similarity": 1.0}
    assert [pair["similarity"] for pair in pairs] == sorted((pair["similarity"] for pair in pairs), reverse=True)


def test_another_network(folder, capsys):
    (folder / "photos" / "2.png").unlink()
    (folder / "photos" / "3.png").write_bytes(b"nothing")
    command = ["gallery", "rebuild", "g", "--model", "conv4-omniglot"]
    assert main(command) == 1
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "rankshot: photos/2.png: No such file or directory",
        "rankshot: nothing was replaced. Relative paths start from this folder; --skip-missing drops missing files",
    ]
    assert main(["search", "photos/1.png", "--gallery", "g", "-k", "1", "--device", "cpu"]) == 0  # as it was
    assert "photos/1.png" in capsys.readouterr().out
    assert main([*command, "--skip-missing", "--to", "new"]) == 0
    told = capsys.readouterr()
    assert told.out == "new: 4 images, seen by conv4-omniglot, 2 left out\n"
    assert "rankshot: photos/3.png: no image" in told.err
    write(folder / "photos" / "2.png", 2)
    write(folder / "photos" / "3.png", 3)
    assert main([*command, "--device", "cpu"]) == 0
    assert capsys.readouterr().out == "g: 6 images, seen by conv4-omniglot\n"
    with Gallery.open("g") as gallery:
        assert gallery.embedder.name == "conv4-omniglot"
        assert {item.metadata["kind"] for item in gallery.items()} == {"early", "late"}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["list", "nowhere"], "nowhere is no gallery"),
        (["list", "g", "--limit", "0"], "limit must be a whole number from 1 to"),
        (["list", "g", "--filter", "late"], "metadata is NAME=VALUE each, got 'late'"),
        (["duplicates", "g", "--above", "2"], "similarity is a cosine, from -1 to 1, got 2.0"),
        (["rebuild", "g", "--model", "nowhere"], "nowhere holds no network"),
        (["rebuild", "nowhere", "--model", "conv4-cub"], "nowhere is no gallery"),
        (["rebuild", "g", "--model", "conv4-cub", "--to", "photos"], "photos exists already: name a new folder"),
    ],
)
def test_bad_use(folder, capsys, command, message):
    before = sorted(folder.iterdir())
    assert main(["gallery", *command]) == 1
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""
    assert sorted(folder.iterdir()) == before
