"""Tables of the studies, from whatever json there is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rankshot.reproduce import study_tables
from rankshot.reproduce.plan import alphas, rows
from rankshot.reproduce.published import COLUMNS
from rankshot.reproduce.studies import METRICS, STUDIED, studies
from rankshot.reproduce.study_tables import (
    CHOSEN_BY,
    batches_table,
    decay_table,
    gap_table,
    objectives_table,
    page,
    signs_table,
)

RESULTS = Path(__file__).parents[2] / "results"
RUNS = {
    run.name: run
    for data in ("mini-imagenet", "omniglot")
    for run in (*studies(data), *rows(data, "paper"), *rows(data, "best"), *alphas(data))
}


def run_of(data, name):
    """One of the plan, or another seed of it."""
    variant, seed = f"{data}/{name}".rsplit("/", 1)
    run = RUNS[f"{variant}/0"]
    return replace(run, name=f"{variant}/{seed}", config=run.config.changed(seed=int(seed)))


def write(results, name, mean, judged=None, data="mini-imagenet"):
    run = run_of(data, name)
    tasks = {task: {"mean": mean, "interval": 0.001} for task in COLUMNS[data]}
    lower = {task: {"mean": mean - 0.1, "interval": 0.001} for task in COLUMNS[data]}
    content = {
        "name": run.name,
        "config": run.config.to_json(),
        "questions": run.questions.to_json(),
        "curve": [],
        "test": {"running": tasks, "batch": lower},
    }
    if judged is not None:
        content["retrieval_metrics"] = {
            metric: {"mean": judged + at / 10, "interval": 0.0} for at, metric in enumerate(METRICS)
        }
    path = results / f"{run.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def test_nothing_yet(tmp_path):
    assert gap_table(tmp_path) is None
    for name in STUDIED:
        assert [table(tmp_path, name) for table in (objectives_table, signs_table, batches_table)] == [None] * 3
    assert page(tmp_path) == ""


def test_the_gap(tmp_path):
    for seed, mean in enumerate((0.42, 0.5, 0.52)):
        write(tmp_path, f"alpha/map-ssvm-1/{seed}", mean)
    write(tmp_path, "gap/as-it-is/0", 0.4)
    write(tmp_path, "gap/as-it-is/1", 0.5)
    write(tmp_path, "gap/all/0", 0.48)
    write(tmp_path, "gap/dlm-all/0", 0.6)
    lines = gap_table(tmp_path).splitlines()
    assert lines[2:4] == [
        "| mAP-SSVM, alpha 1, as published | 47.89 | 60.82 | 52.07 | 22.25 |",
        "| mAP-DLM, alpha 10, as published | 50.28 | 63.70 | 52.96 | 23.68 |",
    ]
    unchanged = "nothing (3 seeds), running statistics: the runs of the table of alpha"
    assert lines[4] == f"| {unchanged} | 48.00 | 48.00 | 48.00 | 48.00 |"
    assert lines[5] == "| nothing (2 seeds), batch statistics | 35.00 | 35.00 | 35.00 | 35.00 |"
    assert ", running statistics | 48.00 (+6.00) | 48.00 (+6.00) |" in lines[6]
    assert lines[7].endswith("(1 seed), batch statistics | 38.00 (+8.00) | 38.00 (+8.00) | 38.00 (+8.00) | 38.00 (+8.00) |")
    assert lines[8].endswith(" running statistics | 60.00 | 60.00 | 60.00 | 60.00 |")  # mAP-DLM's own is not there yet
    assert len(lines) == 10
    assert "Objectives" not in page(tmp_path)


def test_differences_are_those_of_the_same_seeds(tmp_path):
    """What a seed is worth must not count as what is changed."""
    for seed, mean in enumerate((0.4, 0.5)):
        write(tmp_path, f"gap/dlm-as-it-is/{seed}", mean)
    write(tmp_path, "gap/dlm-all/1", 0.51)
    assert "batch statistics | 41.00 (+1.00) |" in gap_table(tmp_path)
    write(tmp_path, "gap/dlm-all/0", 0.43)
    assert "batch statistics | 37.00 (+2.00) |" in gap_table(tmp_path)
    (tmp_path / "mini-imagenet/gap/dlm-as-it-is/0.json").unlink()
    assert "batch statistics | 37.00 (+1.00) |" in gap_table(tmp_path)
    (tmp_path / "mini-imagenet/gap/dlm-all/1.json").unlink()
    assert "batch statistics | 33.00 | 33.00 |" in gap_table(tmp_path)


def test_what_changes_nothing_has_one_recipe():
    """Of which the table of the gap shows two sets of runs."""
    for seed in (0, 1):
        assert RUNS[f"mini-imagenet/gap/as-it-is/{seed}"].config == RUNS[f"mini-imagenet/alpha/map-ssvm-1/{seed}"].config


@pytest.mark.parametrize(("data", "title"), [("mini-imagenet", "mini-ImageNet"), ("omniglot", "Omniglot")])
def test_objectives(tmp_path, data, title):
    write(tmp_path, "objectives/ap/0", 0.4, judged=0.2, data=data)
    write(tmp_path, "objectives/auc-fine/0", 0.4, judged=0.1, data=data)
    assert objectives_table(tmp_path, data).splitlines() == [
        f"| {title}, objective | AP | NDCG | AUC | reciprocal rank | precision@5 |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| AP, alpha 10, epsilon 1 (1 seed) | 20.00 | 30.00 | 40.00 | 50.00 | 60.00 |",
        "| AUC, alpha 1, epsilon 0.003 (1 seed) | 10.00 | 20.00 | 30.00 | 40.00 | 50.00 |",
    ]
    write(tmp_path, "objectives/rr/0", 0.4, data=data)
    with pytest.raises(ValueError, match=f"the record of {data}/objectives/rr/0 has no figure of its retrieval by 'ap'"):
        objectives_table(tmp_path, data)


def test_objectives_are_means_over_seeds(tmp_path):
    write(tmp_path, "objectives/ap/0", 0.4, judged=0.2, data="omniglot")
    write(tmp_path, "objectives/ap/1", 0.4, judged=0.3, data="omniglot")
    assert "| AP, alpha 10, epsilon 1 (2 seeds) | 25.00 |" in objectives_table(tmp_path, "omniglot")
    assert "means in % over seeds and 1,000 episodes." in page(tmp_path)
    path = tmp_path / "omniglot/objectives/ap/1.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "questions": {**content["questions"], "episodes": 600}}))
    assert "| AP, alpha 10, epsilon 1 (1 seed) | 20.00 |" in objectives_table(tmp_path, "omniglot")


def test_signs_and_batches(tmp_path):
    write(tmp_path, "paper/map-dlm/0", 0.4)
    assert signs_table(tmp_path, "mini-imagenet") is None  # nothing beside the row yet
    write(tmp_path, "signs/both/0", 0.41)
    write(tmp_path, "signs/both/1", 0.42)
    write(tmp_path, "batches/8-classes-near/0", 0.3)
    lines = signs_table(tmp_path, "mini-imagenet").splitlines()
    assert lines[0].startswith("| mini-ImageNet, update | 1-shot 5-way |")
    assert lines[2].startswith("| positive, alpha 10, epsilon 1 (1 seed) | 40.00 |")
    assert lines[3].startswith("| the mean of both, alpha 10, epsilon 1 (2 seeds) | 41.50 (+1.00) |")
    assert len(batches_table(tmp_path, "mini-imagenet").splitlines()) == 4
    titles = [line for line in page(tmp_path).splitlines() if line.startswith("#")]
    assert titles == ["## Studies on mini-ImageNet", "### Signs of the update", "### Classes of a batch"]


def test_omniglot_is_compared_with_runs_as_short(tmp_path):
    """And not with the rows of its main table, which are six times as long."""
    write(tmp_path, "paper/map-dlm/0", 0.9, data="omniglot")
    write(tmp_path, "objectives/ap/0", 0.5, judged=0.2, data="omniglot")
    write(tmp_path, "signs/both/0", 0.49, data="omniglot")
    lines = signs_table(tmp_path, "omniglot").splitlines()
    assert lines[2].startswith("| positive, alpha 10, epsilon 1 (1 seed) | 50.00 |")
    assert lines[3].startswith("| the mean of both, alpha 10, epsilon 1 (1 seed) | 49.00 (-1.00) |")
    assert page(tmp_path).count("Runs of 3,000 updates.") == 2


def test_what_has_a_small_epsilon_is_compared_with_its_like(tmp_path):
    write(tmp_path, "objectives/ap/0", 0.5, judged=0.2, data="omniglot")
    write(tmp_path, "objectives/ap-fine/0", 0.6, judged=0.2, data="omniglot")
    write(tmp_path, "signs/both/0", 0.52, data="omniglot")
    write(tmp_path, "signs/both-0.003/0", 0.61, data="omniglot")
    write(tmp_path, "batches/16-classes-near-fine/0", 0.57, data="omniglot")
    cells = [line.split(" | ")[:2] for line in signs_table(tmp_path, "omniglot").splitlines()[2:]]
    assert [cell for _, cell in cells] == ["50.00", "52.00 (+2.00)", "60.00", "61.00 (+1.00)"]
    assert batches_table(tmp_path, "omniglot").splitlines()[-1].split(" | ")[1] == "57.00 (-3.00)"


def test_a_centred_head_and_weight_decay(tmp_path):
    assert decay_table(tmp_path) is None
    for name, mean in (("decay/map-dlm-before/0", 0.4), ("best/map-dlm/0", 0.42), ("best/map-dlm/1", 0.44)):
        write(tmp_path, name, mean)
        path = tmp_path / "mini-imagenet" / f"{name}.json"
        kept = {task: {"mean": mean + 0.1} for task in CHOSEN_BY}
        more = {"validation": {"running": kept}, "test_by_class_mean": {"5-shot 5-way": {"mean": mean + 0.2}}}
        path.write_text(json.dumps({**json.loads(path.read_text()), **more}))
    assert decay_table(tmp_path).splitlines()[2:] == [
        "| mAP-DLM, our earlier recipe (1 seed) | 50.00 | 40.00 | 60.00 | 40.00 | 40.00 |",
        "| mAP-DLM, centred head, weight decay 0.3 (2 seeds): our recipe | 53.00 | 43.00 | 63.00 | 43.00 | 43.00 |",
    ]


def test_what_is_committed():
    assert gap_table(RESULTS) is not None
    assert (RESULTS / "tables.md").read_text().count(study_tables.page(RESULTS)) == 1
