"""`rankshot evaluate`: the table, the report, and what can be wrong."""

import json
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

from rankshot.cli.main import main

OPTIONS = "--filters 8 --batch-classes 4 --batch-size 32 --updates 4 --validation-episodes 5 --device cpu"
TRAIN = ["train", *OPTIONS.split()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, trained):
    return shutil.copytree(trained, tmp_path_factory.mktemp("evaluate") / "run")


def test_the_table_and_the_report(folder, capsys):
    assert main(["evaluate", str(folder), "--untrained", "--episodes", "20"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"untrained +map-dlm", told)
    for task in ("1-shot 5-way", "1-shot 20-way", "5-shot 5-way", "5-shot 20-way", "retrieval 5-way", "retrieval 20-way"):
        assert re.search(rf"^{task} .*( +\d+\.\d ± \d+\.\d){{2}}$", told, re.M), task
    assert f"The report: {folder / 'report.html'}" in told
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert (folder / "evaluation.json").exists()


def test_the_same_seed_asks_the_same_questions(folder, capsys):
    shown = []
    for options in (["--seed", "1"], ["--seed", "1"], ["--seed", "2"]):
        assert main(["evaluate", str(folder), "--episodes", "20", *options]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != shown[2]


def test_other_tasks(folder, capsys):
    assert main(["evaluate", str(folder), "--ways", "3", "--shots", "2", "--episodes", "5", "--split", "val"]) == 0
    told = capsys.readouterr().out
    assert "2-shot 3-way" in told
    assert "retrieval 3-way" in told
    assert "20-way" not in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "nowhere is not a run: there is no config.json in it"),
        ([], "name at least one run"),
        (["RUN", "RUN"], "name at least one run, and each of them once"),
        (["RUN", "--ways"], "name at least one way"),
        (["RUN", "--ways", "5", "119"], "119-way tasks need 119 classes, but there are 118"),
        (["RUN", "--shots", "20"], "shot must be from 1 to 19, got 20"),
        (["RUN", "--split", "dev"], "glyphs has no split 'dev': use 'train', 'val', 'test', 'trainval', 'all'"),
        (["RUN", "--data", "omniglut"], "unknown data set 'omniglut': there is 'glyphs', 'omniglot'"),
        (["RUN", "--batch-norm", "layer"], "unknown batch_norm 'layer': use 'running' or 'batch'"),
        (["RUN", "--episodes", "1"], "episodes must be a whole number from 2 to 1,000,000, got 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(folder, capsys, options, message):
    assert main(["evaluate", *(str(folder) if each == "RUN" else each for each in options)]) == 1
    told = capsys.readouterr().err
    assert told.startswith("rankshot: ")
    assert message in told
    assert told.count("\n") == 1


def test_weights_cut_short_or_of_another_model(folder, tmp_path, capsys):
    other = tmp_path / "other"
    assert main([*TRAIN, "--run", str(other), "--filters", "4"]) == 0
    weights = (folder / "model.safetensors").read_bytes()
    (other / "model.safetensors").write_bytes(weights)
    assert main(["evaluate", str(other)]) == 1
    assert (
        "model.safetensors is of another model: '0.0.weight' must be (4, 1, 3, 3), got (8, 1, 3, 3)"
        in capsys.readouterr().err
    )
    (other / "model.safetensors").write_bytes(weights[:-7])
    assert main(["evaluate", str(other)]) == 1
    assert "model.safetensors is damaged or cut short" in capsys.readouterr().err
    (other / "model.safetensors").unlink()
    assert main(["evaluate", str(other)]) == 1
    assert "holds no network yet" in capsys.readouterr().err


def test_weights_that_come_with_the_package(capsys, tmp_path, monkeypatch, data_root):
    from rankshot.models.shipped import FOLDER

    before = {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*")}
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "conv4-omniglot", "--data", "glyphs", "--episodes", "10"]) == 0
    assert "The report: runs/conv4-omniglot/report-glyphs-test.html" in capsys.readouterr().out
    written = sorted(path.name for path in (tmp_path / "runs/conv4-omniglot").iterdir())
    assert written == ["evaluation-glyphs-test.json", "report-glyphs-test.html"]
    assert {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*")} == before
    assert main(["evaluate", "conv4-omniglut"]) == 1
    assert (
        "conv4-omniglut is not a run: there is no config.json in it. Names of weights are conv4-cub,"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_all_classes_for_who_has_learned_from_none_of_them(folder, capsys, tmp_path, monkeypatch, data_root):
    monkeypatch.chdir(tmp_path)
    asked = ["--data", "glyphs", "--split", "all", "--episodes", "3"]  # not turned, as Omniglot was: it is other data
    assert main(["evaluate", "conv4-omniglot", *asked]) == 0
    assert "The report: runs/conv4-omniglot/report-glyphs-all.html" in capsys.readouterr().out
    page = (tmp_path / "runs/conv4-omniglot/report-glyphs-all.html").read_text()
    assert "585 classes, none of which was in training" in page
    for run in (folder, shutil.copytree(folder, tmp_path / "silent")):
        if run.name == "silent":
            (run / "classes.json").unlink()  # as runs of the first versions are
        assert main(["evaluate", str(run), "--split", "all", "--episodes", "3"]) == 1
        told = capsys.readouterr().err
        assert f"{run}, or what it began with, has learned from " in told
        assert "one of 419 classes that are in split 'all' of glyphs now" in told
        assert not list(run.glob("*-all.*"))


def test_what_was_found_on_other_classes_does_not_take_the_place_of_its_own(trained, tmp_path, capsys):
    run = shutil.copytree(trained, tmp_path / "run")
    assert main(["evaluate", str(run), "--episodes", "3"]) == 0
    own = ("evaluation.json", "report.html", "README.md")
    before = [(run / name).read_bytes() for name in own]
    pictures(tmp_path / "mine")
    for options, called in (
        (["--split", "val"], "glyphs-val"),
        (["--data", str(tmp_path / "mine"), "--split", "all", "--ways", "2", "--shots", "1"], "mine-[0-9a-f]{8}-all"),
    ):
        assert main(["evaluate", str(run), "--episodes", "3", *options]) == 0
        (path,) = re.findall(rf"The report: (.*/report-{called}\.html)$", capsys.readouterr().out, re.M)
        assert Path(path).parent == run
        beside = Path(path.replace("report-", "evaluation-")).with_suffix(".json")
        assert json.loads(beside.read_text())["split"] == called.rpartition("-")[2]
    assert [(run / name).read_bytes() for name in own] == before


def pictures(folder):
    """Of three classes, grey: squares of three sizes."""
    for side in (8, 14, 20):
        (folder / str(side)).mkdir(parents=True)
        for place in range(4):
            picture = Image.new("L", (28, 28), 255)
            picture.paste(0, (place, place, place + side, place + side))
            picture.save(folder / str(side) / f"{place}.png")


def test_validation_classes_that_were_learned_from(tmp_path, capsys):
    options = [*TRAIN, "--split", "trainval", "--validate-every", "0"]
    assert main([*options, "--run", str(tmp_path / "run")]) == 0
    assert main(["evaluate", str(tmp_path / "run"), "--split", "val", "--episodes", "5"]) == 1
    assert "has learned from the validation classes: measure it on split 'test'" in capsys.readouterr().err


def test_a_system_that_only_classifies(folder, tmp_path, capsys):
    run = tmp_path / "maml"
    quick = "--filters 4 --updates 4 --validate-every 2 --validation-episodes 3 --device cpu".split()
    assert main(["train", "--method", "maml", *quick, "--tasks", "2", "--batch-size", "30", "--run", str(run)]) == 0
    assert re.search(r"5-way: 1-shot \d+\.\d  best", capsys.readouterr().out)
    assert main(["evaluate", str(run), str(folder), "--episodes", "3"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^1-shot 5-way .* ± .* ± ", told, re.M)
    assert re.search(r"^retrieval 20-way +mAP, % +– +\d", told, re.M)
    page = (run / "report.html").read_text()
    assert "How did it learn?" in page
    assert "What does it retrieve?" not in page
    assert "model.answer(support, labels, queries)" in (run / "README.md").read_text()
    assert main(["evaluate", str(run), "--ways", "20", "--episodes", "3"]) == 1
    assert "maml can answer none of 1-shot 20-way" in capsys.readouterr().err


def test_a_method_of_one_s_own_needs_its_file(folder, tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    settings = (folder / "config.json").read_text().replace('"map-dlm"', '"centre"')
    (run / "config.json").write_text(settings)
    assert main(["evaluate", str(run)]) == 1
    assert "unknown method 'centre': there is 'fast-ap'" in capsys.readouterr().err


def test_images_with_other_channels(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "conv4-cub", "--data", "glyphs", "--episodes", "5"]) == 1
    assert "conv4-cub takes images of 3 channels, and those of glyphs have 1" in capsys.readouterr().err


def test_what_cannot_be_written_is_still_told(folder, tmp_path, capsys, monkeypatch):
    from rankshot.report import measured

    def full(*_):
        raise OSError(28, "No space left on device", "evaluation.json")

    monkeypatch.setattr(measured, "write_whole", full)
    assert main(["evaluate", str(folder), "--episodes", "5"]) == 1
    told = capsys.readouterr()
    assert "1-shot 5-way" in told.out
    assert "No space left on device" in told.err
