"""The search is fair, and does not try the same thing twice."""

import json
from collections import Counter
from pathlib import Path

import pytest

from rankshot.reproduce.job import settings_in, settings_of
from rankshot.reproduce.plan import BENCHMARKS
from rankshot.reproduce.studies import LONGER, longer
from rankshot.reproduce.trials import FULL, ONE_AT_A_TIME, SHARED, TRIALS, essence, name_of, trials, with_all
from rankshot.schema import read_json

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("name", TRIALS)
def test_smooth_ap_gets_as_many_as_map_dlm(name):
    listed = trials(name, RESULTS)
    names = {run.name for run in listed}
    assert len(names) == len(listed)
    recorded = [read_json(path) for path in (RESULTS / "trials" / name).glob("*.json")]
    tried = Counter(settings_in(each, RESULTS)["method"] for each in recorded if each["name"] not in names)
    tried.update(run.config.method.name for run in listed)
    assert tried["smooth-ap"] >= tried["map-dlm"] > 10
    if BENCHMARKS[name].best:  # a recipe that is chosen already was chosen fairly
        distinct = Counter(essence(settings_in(each, RESULTS)).split("'method', ")[1].split("'")[1] for each in recorded)
        assert distinct["smooth-ap"] >= distinct["map-dlm"]


def test_the_last_trials_were_the_same_for_both():
    changes = {"map-dlm": [], "smooth-ap": []}
    for trial in ONE_AT_A_TIME:
        assert (RESULTS / "trials" / "mini-imagenet" / f"{name_of({**FULL, **trial})}.json").exists()
        changes[trial["method"]].append(trial)
    assert len(changes["map-dlm"]) == len(changes["smooth-ap"]) == len(SHARED)


def test_longer_is_the_best_of_them():
    """By the validation classes."""
    scores = {method: {} for method in LONGER}
    for trial in ONE_AT_A_TIME:
        record = read_json(RESULTS / "trials" / "mini-imagenet" / f"{name_of({**FULL, **trial})}.json")
        config = BENCHMARKS["mini-imagenet"].base.changed(**{"schedule": "cosine", "updates": 22_000, **with_all(trial)})
        scores[trial["method"]][essence(settings_of(config))] = record["validation"]["running"]["retrieval 16-way"]["mean"]
    for run in longer():
        if run.config.run.seed == 0:
            of_method = scores[run.config.method.name]
            assert of_method[essence(settings_of(run.config))] == max(of_method.values())


@pytest.mark.parametrize("name", TRIALS)
def test_they_learn_from_training_classes_alone(name):
    for run in trials(name, RESULTS):
        assert (run.config.data.split, run.questions) == ("train", None)


def test_what_was_tried_under_another_name_is_left_out(tmp_path):
    everything = trials("cub", tmp_path)
    assert len(everything) == len(TRIALS["cub"])
    folder = tmp_path / "trials" / "cub"
    folder.mkdir(parents=True)
    settings = {**settings_of(everything[0].config), "validate_every": 7}  # what is done beside learning is no difference
    (folder / "something.json").write_text(json.dumps({"name": "trials/cub/something", "config": settings}))
    assert trials("cub", tmp_path) == everything[1:]
    (folder / f"{everything[1].name.rsplit('/', 1)[1]}.json").write_text(
        json.dumps({"name": everything[1].name, "config": settings_of(everything[1].config)})
    )
    assert trials("cub", tmp_path) == everything[1:]  # done under its own name: still of the list
