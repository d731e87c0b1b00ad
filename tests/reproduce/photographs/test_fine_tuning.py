"""Fine-tuning by every loss: rankings measured by definition, tests chosen by their trials, a head that really learns."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import metric_of

from rankshot.reproduce.photographs import fine_tuning
from rankshot.reproduce.photographs.contenders import METHODS
from rankshot.reproduce.photographs.fine_tuning import Job, ranked, run, trials_of
from rankshot.vectors import unit_vectors


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(2, 4))
def test_metrics_are_their_definitions(seed, classes, images):
    """MAP@R: precision at every relevant one among the first R, over R."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat(images)
    vectors = unit_vectors(torch.randn(len(labels), 5, generator=random, dtype=torch.float64))
    expected = {"recall_at_1": [], "map_at_r": [], "map": []}
    for query in range(len(labels)):
        others = [item for item in range(len(labels)) if item != query]
        others.sort(key=lambda item: -float(vectors[item] @ vectors[query]))
        order = [bool(labels[item] == labels[query]) for item in others]
        R = sum(order)
        expected["recall_at_1"].append(order[0])
        expected["map_at_r"].append(sum(sum(order[: k + 1]) / (k + 1) for k in range(R) if order[k]) / R)
        expected["map"].append(metric_of(order, "ap"))
    found = ranked(vectors, labels)
    for name, values in expected.items():
        assert found[name] == pytest.approx(100 * np.mean(values), abs=1e-9)


def record(results, job, map_at_r):
    path = results / fine_tuning.FOLDER / job.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"job": job.__dict__, "results": {"map_at_r": map_at_r, "recall_at_1": 0.0, "map": 0.0}}))


def test_every_method_has_as_many_trials_and_its_best_is_tested(tmp_path):
    trials = trials_of("cub", "some", "head")
    assert {method: sum(job.method == method for job in trials) for method in METHODS} == dict.fromkeys(METHODS, 6)
    assert len({job.path for job in trials}) == len(trials)
    of_two = [job for job in trials if job.method in ("map-dlm", "supcon")]
    for number, job in enumerate(of_two):
        record(tmp_path, job, -number)
    last = next(job for job in trials if job.method == "triplet")
    record(tmp_path, last, 50.0)  # the other trials of this method are still to come
    tests = fine_tuning.tests_of("cub", "renamed", "head", tmp_path)
    assert [(job.seed, job.method) for job in tests] == [(s, m) for s in (0, 1, 2) for m in ("map-dlm", "supcon")]
    assert {(job.setting, job.rate) for job in tests} == {(0, 0.0001)}
    assert all(job.data == "renamed" and job.part == "head" and not job.is_trial for job in tests)


def test_few_shot_tasks_are_chosen_by_few_shot_figures(tmp_path):
    trials = [job for job in trials_of("grocery", "some", "whitened") if job.method == "triplet"]
    for number, job in enumerate(trials):
        record(tmp_path, job, -number)
        path = tmp_path / fine_tuning.FOLDER / job.path
        written = json.loads(path.read_text())
        written["results"]["prototype"] = {"1-shot 10-way": {"mean": -number}, "5-shot 10-way": {"mean": number / 10}}
        path.write_text(json.dumps(written))
    tests = fine_tuning.tests_of("grocery", "some", "whitened", tmp_path)
    assert {(job.setting, job.rate) for job in tests} == {(trials[-1].setting, trials[-1].rate)}
    assert tests[0].path.parts[:3] == ("grocery", "whitened", "test")


def test_a_record_of_other_settings_is_not_taken(tmp_path, monkeypatch):
    """The file's name has the number of a setting, and says nothing about what that is."""
    job = Job("cub", "none", "multi-similarity", 1, 0.01, 0, is_trial=True, part="head")
    path = tmp_path / fine_tuning.FOLDER / job.path
    path.parent.mkdir(parents=True)
    contender = fine_tuning.contender_of(job)
    path.write_text(json.dumps({"contender": contender}))
    assert run(job, tmp_path) is None
    monkeypatch.setattr(fine_tuning, "results_of", lambda job: pytest.fail("it must not be trained anew"))
    for change, named in (({"miner": 0.5}, "miner"), ({"settings": {**contender["settings"], "beta": 7}}, "beta")):
        path.write_text(json.dumps({"contender": {**contender, **change}}))
        with pytest.raises(
            ValueError, match=rf"0\.json was made with other settings \({named}\): to run it anew, move away"
        ):
            run(job, tmp_path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="was made with other settings"):
        run(job, tmp_path)


@pytest.mark.parametrize(
    ("part", "method"), [("head", "map-dlm"), ("head", "prototypical"), ("head", "proxy-anchor"), ("whitened", "map-dlm")]
)
def test_a_head_learns_what_the_network_does_not_see(part, method, tmp_path, monkeypatch):
    """Views whose first dimensions hide the class behind much larger noise: unseen classes are ranked better afterwards."""
    random = np.random.default_rng(0)

    class Images:
        classes, labels = [str(name) for name in range(16)], np.repeat(np.arange(16), 12)

    def seen(data, split):
        centres = np.random.default_rng(split == "test").normal(size=(16, 20))
        values = np.zeros((192, 4, 40))
        values[..., :20] = centres[Images.labels][:, None] + 0.3 * random.normal(size=(192, 4, 20))
        values[..., 20:] = 3 * random.normal(size=(192, 4, 20))
        return Images, unit_vectors(torch.tensor(values, dtype=torch.float32))

    monkeypatch.setattr(fine_tuning, "seen", seen)
    monkeypatch.setattr(fine_tuning, "DIMENSIONS", 40)
    monkeypatch.setitem(fine_tuning.TASKS, "cub", fine_tuning.Task(128, 0, 120))
    before = ranked(unit_vectors(seen("", "test")[1][:, 0]), torch.from_numpy(Images.labels))
    job = Job("cub", "none", method, 0, 0.01, 0, is_trial=False, part=part)
    assert "Recall@1" in str(run(job, tmp_path))
    found = json.loads((tmp_path / fine_tuning.FOLDER / job.path).read_text())
    assert found["results"]["map_at_r"] > 1.5 * before["map_at_r"]
    assert found["job"]["method"] == method
    assert found["seconds"] > 0
    assert run(job, tmp_path) is None  # it is there
