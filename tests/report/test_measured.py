"""Runs are measured as `fewshot.evaluate` measures their networks, and what was found is kept beside them."""

import json
import shutil
from dataclasses import replace

import pytest

import rankshot
from rankshot import data
from rankshot.fewshot import Classification, Retrieval, evaluate
from rankshot.report import (
    measure,
    measure_untrained,
    names_of,
    protocol_for,
    record,
    unseen_protocol,
    write_report,
)
from rankshot.training.run_folder import save_model

TASKS = [Classification(5, 1), Classification(20, 1), Retrieval(5), Retrieval(20)]


@pytest.fixture
def run(runs, tmp_path):
    shutil.copytree(runs[0], tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("norm", ["running", "batch"])
def test_a_run(run, norm):
    protocol = protocol_for([run], ways=(5, 20), shots=(1,), episodes=20, seed=3, batch_norm=norm)
    measured = measure(run, protocol, "name")
    expected = evaluate(rankshot.from_pretrained(run), data.load("glyphs", "test"), TASKS, 20, seed=3, batch_norm=norm)
    assert [each.mean for each in measured.results] == [each.mean for each in expected]

    record(measured, protocol)
    kept = json.loads((run / "evaluation.json").read_text())
    assert kept["tasks"]["retrieval 20-way"] == {"mean": expected[-1].mean, "interval": expected[-1].interval}
    assert (kept["data"], kept["split"], kept["episodes"], kept["seed"], kept["norm"]) == ("glyphs", "test", 20, 3, norm)
    assert f"| retrieval 20-way | {100 * expected[-1].mean:.2f} ±" in (run / "README.md").read_text()


def test_folders_may_be_texts(run):
    assert names_of([str(run)]) == ["map-dlm"]
    protocol = protocol_for([str(run)], ways=(5,), shots=(1,), episodes=2)
    assert unseen_protocol(str(run), episodes=2).split == "test"
    measured = measure(str(run), protocol, "name")
    record(replace(measured, folder=str(run)), protocol)
    assert (run / "evaluation.json").is_file()
    assert "## On test classes" in (run / "README.md").read_text()
    columns = [measure_untrained(str(run), protocol), replace(measured, folder=str(run))]
    write_report(str(run / "report.html"), columns, protocol)
    assert "How did it learn?" in (run / "report.html").read_text()
    for function in (protocol_for, names_of):
        with pytest.raises(TypeError, match=r"folders must be a list of them, got '.*run': write \['.*run'\]"):
            function(str(run))


def test_untrained_is_where_training_began(run, runs):
    protocol = protocol_for([run], ways=(5, 20), shots=(1,), episodes=20)
    untrained, trained = measure_untrained(run, protocol), measure(run, protocol, "trained")
    assert trained.results[0].mean > untrained.results[0].mean + 0.1
    record(untrained, protocol)
    assert not (run / "evaluation.json").exists()


def test_names(runs, run, tmp_path):
    assert names_of(runs) == ["map-dlm", "siamese"]
    assert names_of([runs[0], run]) == ["map-dlm", "run"]
    shutil.copytree(run, tmp_path / "deep" / "run")
    assert names_of([run, tmp_path / "deep" / "run"]) == [str(run), str(tmp_path / "deep" / "run")]


def test_runs_that_were_trained_differently(run, runs):
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "data": {**config["data"], "rotations": True}}))
    with pytest.raises(ValueError, match=r"trained with different rotations .*: say what to measure on with --rotations"):
        protocol_for([runs[0], run])
    assert len(protocol_for([run]).images.classes) == 4 * 118
    assert len(protocol_for([runs[0], run], rotations=False).images.classes) == 118


def test_the_report_tells_whether_classes_were_seen(run, tmp_path):
    for split, told in (
        ("test", "118 classes, none of which was in training"),
        ("train", "419 classes, some of which were"),
    ):
        protocol = protocol_for([run], split=split, episodes=2)
        write_report(tmp_path / "report.html", [measure(run, protocol, "mine")], protocol)
        assert told in (tmp_path / "report.html").read_text()


def test_another_evaluation_is_of_other_weights(run):
    """After more training the card does not tell the old figures."""
    protocol = protocol_for([run], episodes=5)
    record(measure(run, protocol, "mine"), protocol)
    assert "## On test classes" in (run / "README.md").read_text()
    save_model(run, rankshot.from_pretrained(run).state_dict(), 999, {})
    assert "## On test classes" not in (run / "README.md").read_text()
