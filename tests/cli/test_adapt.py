"""A map for embeddings that are there already, from the shell."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import rankshot as package
from rankshot.cli import adapt
from rankshot.cli.main import main


def many_classes(classes=12, of_each=12, dtype=np.float32):
    """What tells classes apart lies in a few dimensions; in the others, vectors differ for no reason, and by more."""
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(classes), of_each)
    signal = generator.normal(size=(classes, 6))[labels] + 0.3 * generator.normal(size=(len(labels), 6))
    vectors = np.concatenate([signal, 3 * generator.normal(size=(len(labels), 4))], axis=1)
    order = generator.permutation(len(labels))
    return vectors[order].astype(dtype), labels[order]


def npz(folder, vectors, labels):
    np.savez(folder / "mine.npz", vectors=vectors, labels=labels)
    return str(folder / "mine.npz")


def told_table(told):
    """before, after of mAP and of the nearest one."""
    return [tuple(map(float, pair)) for pair in re.findall(r", %\s+([0-9.]+)\s+([0-9.]+)\n", told)]


@pytest.mark.slow
def test_the_whole_command(tmp_path, capsys, monkeypatch):
    """A mapped file, and labels elsewhere."""
    folder = tmp_path
    monkeypatch.chdir(folder)
    vectors, labels = many_classes()
    np.save(folder / "mine.npy", vectors)
    lines = [f"{row},{'' if row < 3 else f'class {label}'}" for row, label in enumerate(labels)]
    (folder / "labels.csv").write_text("\n".join(["id,label", *lines, ""]))
    assert main("adapt mine.npy --labels labels.csv --out map --vectors-out new.npy".split()) == 0
    done = capsys.readouterr()
    assert done.err == ""
    assert "mine.npy: 144 rows of 10 dimensions, 12 classes; 3 rows without a label\n" in done.out
    assert re.search(
        r"^set aside for this table: 3 classes, all 3[3-6] rows of them, which rank one another and 10\d learned rows$",
        done.out,
        re.M,
    )
    (map_before, map_after), (nearest_before, nearest_after) = told_table(done.out)
    assert map_after > map_before + 10
    assert nearest_after > nearest_before
    assert "map: the map, learned from all 141 rows with a label; that of the table, only from those" in done.out
    assert "new.npy: 144 vectors of 10 dimensions\n" in done.out
    assert {path.name for path in folder.iterdir()} == {"mine.npy", "labels.csv", "map", "new.npy"}

    new = np.load(folder / "new.npy", allow_pickle=False)
    transformer = package.RankingTransformer.from_pretrained(folder / "map")
    assert new.dtype == np.float32
    assert np.abs(new - transformer.transform(vectors)).max() < 1e-6
    assert np.abs(np.linalg.norm(new, axis=1) - 1).max() < 1e-5

    about = json.loads((folder / "map" / "evaluation.json").read_text())
    assert (about["rows"], about["rows_with_a_label"], about["classes"], about["dimensions"]) == (144, 141, 12, 10)
    assert (about["test"], about["seed"]) == (0.25, 0)
    assert about["rows_learned_from"] + about["rows_measured"] == 141
    assert round(100 * about["before"]["map"], 1) == map_before
    assert round(100 * about["after"]["nearest"], 1) == nearest_after
    assert "torch" in about


def test_what_was_there_stays(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(adapt, "read_vectors", lambda *_, **__: pytest.fail("it was read first"))
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "mine").write_text("mine")
    assert main(["adapt", "mine.npz", "--out", str(tmp_path / "map")]) == 1
    assert capsys.readouterr().err == f"rankshot: {tmp_path / 'map'} exists already: name a new folder\n"
    assert (tmp_path / "map" / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--vectors-out nowhere/new.npy", "nowhere/new.npy: there is no folder nowhere"),
        ("--vectors-out new.npz", "new.npz must end in .npy"),
        ("--vectors-out folder.npy", "folder.npy is a folder"),
        ("--test 1", "test must be a number from 0 to 0.9, got 1.0"),
        ("--test nan", "test must be a number from 0 to 0.9, got nan"),
        ("--seed -1", "seed must be a whole number from 0 to 4,294,967,295, got -1"),
        ("--hidden 0", "hidden must be a whole number from 1 to 16,384, got 0"),
        ("--loss map", "unknown loss 'map'"),
        ("--components 11", "components must be a whole number from 1 to 10, got 11"),
        ("--vectors-name there", "there is no 'there'"),
        ("--labels none.csv", "none.csv: No such file or directory"),
        ("--labels short.txt", "short.txt has 2 labels, and mine.npz 144 vectors: one each is right"),
        ("--labels one.txt", "The number of classes has to be greater than one"),
    ],
)
def test_what_cannot_be(tmp_path, capsys, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    npz(tmp_path, *many_classes())
    (tmp_path / "short.txt").write_text("a\nb\n")
    (tmp_path / "one.txt").write_text("a\n" * 144)
    (tmp_path / "folder.npy").mkdir()
    assert main(["adapt", "mine.npz", "--out", "map", *options.split()]) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith("rankshot: ")
    assert complaint.count("\n") == 1
    assert told in complaint
    assert not (tmp_path / "map").exists()


@pytest.mark.parametrize("name", ["mine.npz", "mine.npy", "mine.parquet", "mine.pkl"])
def test_files_that_are_something_else(tmp_path, capsys, name):
    (tmp_path / name).write_bytes(b"something else")
    (tmp_path / "l.txt").write_text("a\n")
    given = [str(tmp_path / name), "--labels", str(tmp_path / "l.txt")]
    assert main(["adapt", *given, "--out", str(tmp_path / "map")]) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"rankshot: {tmp_path / name}")
    assert complaint.count("\n") == 1


def test_an_option_is_missing(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["adapt", "mine.npz"])
    assert ended.value.code == 2
    assert "--out" in capsys.readouterr().err


def test_rows_of_known_classes_from_parquet(tmp_path, capsys):
    vectors, labels = many_classes(classes=3, of_each=30)
    content = {"v": pa.array(list(vectors), pa.list_(pa.float32(), 10)), "kind": [f"kind {label}" for label in labels]}
    parquet.write_table(pa.table(content), tmp_path / "mine.parquet")
    more = ["--labels-name", "kind", "--components", "4", "--loss", "smooth-ap", "--hidden", "8", "--verbose"]
    assert main(["adapt", str(tmp_path / "mine.parquet"), *more, "--out", str(tmp_path / "map")]) == 0
    told = capsys.readouterr().out
    assert "set aside for this table: 21 rows of 3 classes\n" in told
    assert "RankingTransformer  update " in told
    (before, after), _ = told_table(told)
    assert after > before
    assert package.RankingTransformer.from_pretrained(tmp_path / "map").transform(vectors).shape == (90, 4)


def test_float64_and_the_file_itself_replaced(tmp_path, capsys):
    vectors, labels = many_classes(dtype=np.float64)
    np.save(tmp_path / "mine.npy", vectors)
    np.save(tmp_path / "labels.npy", labels)
    given = [str(tmp_path / "mine.npy"), "--labels", str(tmp_path / "labels.npy"), "--test", "0"]
    assert main(["adapt", *given, "--out", str(tmp_path / "map"), "--vectors-out", str(tmp_path / "mine.npy")]) == 0
    told = capsys.readouterr().out
    assert "before" not in told
    assert "of the table" not in told
    found = np.load(tmp_path / "mine.npy", allow_pickle=False)
    expected = package.RankingTransformer.from_pretrained(tmp_path / "map").transform(vectors)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-6


def test_too_few_to_set_any_aside(tmp_path, capsys):
    vectors, labels = many_classes(classes=2, of_each=3)
    with pytest.warns(UserWarning, match="too few rows to hold any out"):
        assert main(["adapt", npz(tmp_path, vectors, labels), "--out", str(tmp_path / "map")]) == 0
    told = capsys.readouterr().out
    assert "too few rows or classes to set any aside: there is no table of how well the map does\n" in told
    assert not told_table(told)
    about = json.loads((tmp_path / "map" / "evaluation.json").read_text())
    assert about["before"] is about["after"] is about["set_aside"] is None


@pytest.mark.slow
def test_vectors_that_are_good_already(tmp_path):
    """What the transformer warns of is a line each; the table says the same."""
    labels = np.repeat(np.arange(8), 4)
    vectors = np.eye(8)[labels] + 1e-3 * np.random.default_rng(0).normal(size=(32, 8))
    command = [sys.executable, "-m", "rankshot", "adapt", npz(tmp_path, vectors, labels), "--out", str(tmp_path / "map")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines
    assert all(line.startswith("rankshot: what is held out is ranked no better by any map") for line in lines)
    assert told_table(done.stdout) == [(100.0, 100.0), (100.0, 100.0)]
    assert "by mAP, the map ranks these rows no better than the vectors as they are\n" in done.stdout


def options(**given):
    return adapt.Options(embeddings="mine.npz", out="map", **given)


def test_whole_classes_are_set_aside(capsys):
    numbers = np.repeat(np.arange(20), 5)
    numbers[::10] = -1
    parts = adapt.set_aside(numbers, 8, options())
    assert len(set(numbers[parts.tested])) == 5
    assert not set(numbers[parts.tested]) & set(numbers[parts.learned])
    assert sorted([*parts.tested, *parts.learned]) == list(range(100))
    assert -1 not in numbers[parts.tested]
    assert (parts.ranked == parts.tested).all()
    again, other = adapt.set_aside(numbers, 8, options()), adapt.set_aside(numbers, 8, options(seed=1))
    assert (again.tested == parts.tested).all()
    assert set(numbers[other.tested]) != set(numbers[parts.tested])
    assert capsys.readouterr().out == ""


def test_rows_are_set_aside():
    numbers = np.array([0] * 40 + [1] * 4 + [2] * 3 + [3])
    parts = adapt.set_aside(numbers, 8, options(held_out="rows"))
    assert np.bincount(numbers[parts.tested]).tolist() == [10, 2]
    assert np.bincount(numbers[parts.learned]).tolist() == [30, 2, 3, 1]
    most = adapt.set_aside(numbers, 8, options(held_out="rows", test=0.9))
    assert np.bincount(numbers[most.learned]).tolist() == [4, 2, 3, 1]


@pytest.mark.parametrize(
    ("counts", "how", "tested"),
    [
        ([5, 5, 5, 5], "auto", 2),
        ([5, 5, 5, 5], "classes", None),  # what is left could not be held out of
        ([5] * 6, "classes", 2),
        ([1] * 30, "auto", None),
        ([2, 2, 1], "auto", None),
        ([40, 1], "rows", None),  # one class ranks itself
    ],
)
def test_how_many_are_enough(capsys, counts, how, tested):
    numbers = np.repeat(np.arange(len(counts)), counts)
    parts = adapt.set_aside(numbers, 8, options(held_out=how))
    assert (None if parts is None else len(set(numbers[parts.tested]))) == tested
    assert ("too few" in capsys.readouterr().out) == (parts is None)


@pytest.mark.slow
def test_of_many_rows_a_sample_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(adapt, "MOST_TESTED", 20)
    vectors, labels = many_classes()
    assert main(["adapt", npz(tmp_path, vectors, labels), "--out", str(tmp_path / "map")]) == 0
    assert "and 20 learned rows; measured on a sample of 20\n" in capsys.readouterr().out
    assert json.loads((tmp_path / "map" / "evaluation.json").read_text())["rows_measured"] == 20


def test_samples():
    generator = np.random.default_rng(0)
    numbers = np.concatenate([np.repeat(np.arange(50), 30), np.full(100, -1)])
    known = np.flatnonzero(numbers >= 0)
    few = numbers[adapt.evenly(numbers, known, 100, generator)]
    assert len(few) == 100
    assert set(np.unique(few, return_counts=True)[1]) == {10}
    more = numbers[adapt.evenly(numbers, known, 1000, generator)]
    assert set(np.bincount(more, minlength=50)) == {20}
    assert (numbers[adapt.some(numbers, np.arange(1600), 1500, generator)] >= 0).all()
    assert len(adapt.some(numbers, np.arange(1600), 1550, generator)) == 1550
