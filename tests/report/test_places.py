"""Of a run's own test classes under the usual names; of anything else beside that."""

import json
import shutil
from pathlib import Path

import pytest
from pictures import write

from rankshot.data import prepared
from rankshot.models.shipped import folder_of
from rankshot.report import evaluation_path, report_path


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def trained_on(run, name):
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "data": {**config["data"], "name": name}}))


def test_its_own_and_others(run):
    assert report_path(run, "glyphs", "test") == run / "report.html"
    assert evaluation_path(run, "glyphs", "test") == run / "evaluation.json"
    assert report_path(run, "glyphs", "val") == run / "report-glyphs-val.html"
    assert evaluation_path(run, "omniglot", "test") == run / "evaluation-omniglot-test.json"
    assert report_path(str(run), "glyphs", "test") == run / "report.html"
    assert evaluation_path(str(run), "glyphs", "test") == run / "evaluation.json"


def test_weights_by_name(tmp_path):
    assert report_path(folder_of("conv4-omniglot"), "omniglot", "test") == Path("runs/conv4-omniglot/report.html")
    assert report_path(folder_of("conv4-omniglot"), "glyphs", "all") == Path("runs/conv4-omniglot/report-glyphs-all.html")


def test_who_does_not_tell_what_it_has_learned_from(run):
    config = json.loads((run / "config.json").read_text())
    del config["data"]
    (run / "config.json").write_text(json.dumps(config))
    assert report_path(run, "glyphs", "test") == run / "report-glyphs-test.html"


def test_a_folder_that_has_grown_is_the_same_one(run, tmp_path):
    for side in ("a", "b"):
        for letter in "xyz":
            write(tmp_path / side / "mine" / letter / "1.png")
    before = prepared(str(tmp_path / "a" / "mine")).name
    trained_on(run, before)
    write(tmp_path / "a" / "mine" / "x" / "2.png")
    assert report_path(run, str(tmp_path / "a" / "mine"), "test") == run / "report.html"
    assert report_path(run, prepared(str(tmp_path / "a" / "mine")).name, "test") == run / "report.html"
    other = prepared(str(tmp_path / "b" / "mine")).name  # of the same name, elsewhere
    assert report_path(run, str(tmp_path / "b" / "mine"), "test") == run / f"report-{other}-test.html"


def test_names_that_are_no_file_names(run):
    assert report_path(run, "a/b c", "val") == run / "report-a-b-c-val.html"
