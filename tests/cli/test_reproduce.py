"""`rankshot reproduce`: what there is to do, tables from what is there, and what can be wrong. Long runs are not tests."""

import json
import shutil
from pathlib import Path

import pytest

from rankshot.cli.main import main

RESULTS = Path(__file__).parents[2] / "results"


def test_the_list(capsys, tmp_path):
    assert main(["reproduce", "omniglot", "cub", "--list", "--results", str(tmp_path / "none")]) == 0
    told = capsys.readouterr()
    assert told.err == f"there is no folder {tmp_path / 'none'} here\n"
    lines = told.out.splitlines()
    assert lines[0].split() == ["omniglot/paper/map-dlm/0"]
    assert "cub/paper/siamese/2" in [line.strip() for line in lines]
    assert main(["reproduce", "cub", "--list", "--only", "*/siamese/*"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert main(["reproduce", "cub", "cub", "--list", "--only", "*/siamese/*"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_the_studies(capsys):
    assert main(["reproduce", "mini-imagenet", "--studies", "--list", "--results", str(RESULTS)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["done", "mini-imagenet/gap/as-it-is/0"]
    assert {line[-1].split("/")[1] for line in lines} == {
        "gap",
        "objectives",
        "signs",
        "batches",
        "maml",
        "prototypical",
        "longer",
        "decay",
    }


def test_tables(tmp_path, capsys):
    shutil.copytree(RESULTS / "omniglot", tmp_path / "omniglot")
    assert main(["reproduce", "--tables", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == str(tmp_path / "tables.md")
    assert "| mAP-DLM, as published |" in (tmp_path / "tables.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say what to reproduce: omniglot, mini-imagenet, cub; or --tables"),
        (["cifar"], "unknown data set 'cifar': the paper has 'omniglot', 'mini-imagenet', 'cub'"),
        (["cub", "--only", "nothing"], "no run of cub is called 'nothing': --list tells what there is"),
        (["--again", "nowhere.json"], "nowhere.json: No such file or directory"),
        (["mini-imagenet"], "mini-imagenet is not prepared yet."),
        (["--tables", "--results", "none"], "there is no folder none: rankshot reproduce omniglot makes it"),
        (["--tables", "--list"], "--list only tells what runs there are"),
        (["cub", "--list", "--jobs", "0"], "jobs must be a whole number from 1 to 256, got 0"),
        (["cub", "--seconds", "nan"], "seconds must be a number from 0 to 1e+09, got nan"),
    ],
    ids=str,
)
def test_bad_input(options, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *options]) == 1
    assert message in capsys.readouterr().err


@pytest.fixture
def glyphs(tmp_path, drawn):
    """A root where glyphs lie in the place of Omniglot."""
    shutil.copytree(drawn, tmp_path / "root" / "omniglot")
    return tmp_path / "root"


@pytest.fixture
def omniglot(shared, data_root):
    """A root with the real images, which take long to prepare."""
    zips = [str(shared / "omniglot" / f"images_{part}.zip") for part in ("background", "evaluation")]
    assert main(["data", "prepare", "omniglot", "--from", *zips, "--root", str(data_root)]) == 0
    return data_root


@pytest.mark.parametrize("images", ["glyphs", pytest.param("omniglot", marks=pytest.mark.slow)])
def test_a_row_of_omniglot(images, request, tmp_path, capsys, monkeypatch):
    """The real thing, but for its length: three updates of the first row, measured, recorded, and run again."""
    from dataclasses import replace

    from rankshot.reproduce import plan
    from rankshot.reproduce.job import Questions

    small = plan.BENCHMARKS["omniglot"]
    base = small.base.changed(filters=4, updates=3, batch_size=32)
    quick = replace(small, base=base, questions=Questions(ways=(5,), shots=(1,), episodes=5))
    monkeypatch.setitem(plan.BENCHMARKS, "omniglot", quick)
    root = str(request.getfixturevalue(images))
    places = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--root", root]
    assert main(["reproduce", "omniglot", "--only", "*/paper/map-dlm/0", *places]) == 0
    assert "1 of 1 runs are done" in capsys.readouterr().out
    path = tmp_path / "results" / "omniglot/paper/map-dlm/0.json"
    assert main(["reproduce", "--again", str(path), *places]) == 0
    assert "+0.00" in capsys.readouterr().out


def test_lists_that_contradict(capsys):
    for options, complaint in (
        (["omniglot", "--list", "--tables"], "--list only tells what runs there are"),
        (["omniglot", "--trials", "--systems"], "different lists of runs"),
        (["mini-imagenet", "--systems", "--studies"], "--systems and --studies are different lists of runs"),
        (["cub", "--systems", "--list"], "there are no --systems runs of cub"),
        (["cub", "--studies", "--list"], "there are no --studies runs of cub"),
        (["photographs", "--studies"], "photographs has one list of runs: give it without --studies"),
        (["--studies"], "say what to reproduce"),
    ):
        assert main(["reproduce", *options]) == 1
        assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"test": {}}, "is damaged: 'test' should hold a mean and an interval of every task"),
        ({"test": None}, "is damaged"),
        ({"test": {"running": {"1-shot 5-way": {"mean": None, "interval": 0.1}}, "batch": {}}}, "is damaged"),
        ({"config": "x"}, "there is no object 'config' in it"),
        ({"config": {"filters": 8}}, "was made with other settings"),
    ],
    ids=str,
)
def test_tables_from_damaged_records(change, complaint, tmp_path, capsys):
    place = tmp_path / "omniglot" / "paper" / "map-dlm"
    place.mkdir(parents=True)
    record = json.loads((RESULTS / "omniglot/paper/map-dlm/0.json").read_text())
    (place / "0.json").write_text(json.dumps({**record, **change}))
    assert main(["reproduce", "--tables", "--results", str(tmp_path)]) == 1
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "tables.md").exists()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "../../escape"}, "its name '../../escape' leads elsewhere"),
        ({"name": "/escape"}, "leads elsewhere"),
        ({"questions": {"foo": 1}}, "'questions' should hold"),
        ({"questions": "x"}, "'questions' should hold"),
        ({"questions": {"ways": 5, "shots": [1], "episodes": 9, "seed": 0}}, "must be lists of numbers"),
        ({"test": {"running": 3}}, "is damaged: 'test' should hold a mean and an interval of every task"),
        ({"test": {norm: {"1-shot 5-way": {}} for norm in ("running", "batch")}}, "is damaged: 'test'"),
        ({"test": None, "validation": None}, "holds no result to compare with"),
    ],
    ids=str,
)
def test_again_from_damaged_records(change, complaint, tmp_path, capsys):
    record = json.loads((RESULTS / "omniglot/paper/map-dlm/0.json").read_text())
    (tmp_path / "0.json").write_text(json.dumps({**record, **change}))
    assert main(["reproduce", "--again", str(tmp_path / "0.json"), "--runs", str(tmp_path / "runs")]) == 1
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
