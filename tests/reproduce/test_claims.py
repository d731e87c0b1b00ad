"""The tables of docs/paper.md, from small records whose figures are known."""

import json
from pathlib import Path
from statistics import stdev

import pytest

from rankshot.reproduce.claims import ahead_of_others, alphas, differences, fewer_episodes, learning_speed, less, reached_at
from rankshot.reproduce.plan import BENCHMARKS
from rankshot.reproduce.published import COLUMNS

RESULTS = Path(__file__).parents[2] / "results"
TASKS = ("1-shot 5-way", "1-shot 16-way", "1-shot 20-way", "retrieval 5-way", "retrieval 16-way", "retrieval 20-way")


def curve(values, step=500):
    return [
        {"update": (at + 1) * step, **{task: {"mean": value, "interval": 0.01} for task in TASKS}}
        for at, value in enumerate(values)
    ]


def write(results, name, test=0.5, values=(), method="map-dlm", seed=0):
    tasks = {*COLUMNS["omniglot"], *COLUMNS["mini-imagenet"], *COLUMNS["cub"]}
    both = {norm: {task: {"mean": test, "interval": 0.01} for task in tasks} for norm in ("running", "batch")}
    config = BENCHMARKS["mini-imagenet"].config("paper", method, seed).to_json()
    path = results / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(
            {"config": config, "questions": {"episodes": 10}, "test": both, "curve": curve(values), "validation": both}
        )
    )


def cells(text, row):
    line = next(line for line in text.splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_a_level_is_reached_by_the_mean_of_three_validations():
    values = [0.1, 0.9, 0.2, 0.5, 0.6, 0.7]
    assert reached_at(curve(values), "1-shot 5-way", 0.5) == 1500  # 0.9, 0.2 and 0.5 around the third
    assert reached_at(curve(values), "1-shot 5-way", 0.6) == 2500
    assert reached_at(curve(values), "1-shot 5-way", 0.61) is None


def test_alphas_tell_the_end_and_the_best(tmp_path):
    write(tmp_path, "omniglot/alpha/map-dlm-1/0", values=[0.1, 0.9, *[0.5] * 4, 0.6], method="map-dlm")
    write(tmp_path, "omniglot/curves/map-dlm", values=[0.7], method="map-dlm")
    table = alphas(tmp_path)
    assert table.splitlines()[0] == "|  | alpha 1 | alpha 3 | alpha 10 | alpha 30 |"
    assert cells(table, "Omniglot, mAP-DLM, retrieval 20-way") == ["52.0 (90.0)", "–", "70.0 (70.0)", "–"]
    assert cells(table, "mini-ImageNet, mAP-SSVM, retrieval 16-way") == ["–"] * 4


def test_learning_speed(tmp_path):
    write(tmp_path, "mini-imagenet/paper/siamese/0", values=[0.1, 0.2, 0.3, *[0.4] * 5])
    write(tmp_path, "mini-imagenet/paper/map-dlm/0", values=[0.4] * 8)
    write(tmp_path, "mini-imagenet/paper/map-ssvm/0", values=[0.3] * 8)
    assert cells(learning_speed(tmp_path, "mini-imagenet"), "retrieval 16-way | 0") == [
        *("0", "40.0", "2,500", "1,000 (40 %)", "never")
    ]
    assert learning_speed(tmp_path, "omniglot") == "Not measured yet."


def test_learning_speed_of_every_seed(tmp_path):
    for seed, rising in enumerate(([0.1, 0.4], [0.1, 0.2, 0.3, 0.4])):
        write(tmp_path, f"mini-imagenet/paper/siamese/{seed}", values=[*rising, *[0.5] * 5], seed=seed)
    write(tmp_path, "mini-imagenet/paper/map-dlm/1", values=[0.5] * 7, seed=1)
    table = learning_speed(tmp_path, "mini-imagenet")
    assert cells(table, "retrieval 5-way | 0") == ["0", "50.0", "2,000", "–"]  # of mAP-DLM there is no such seed
    assert cells(table, "retrieval 5-way | 1") == ["1", "50.0", "3,000", "1,000 (33 %)"]


def test_differences_have_students_interval_over_seeds(tmp_path):
    ours, theirs = (0.50, 0.52, 0.54), (0.40, 0.41, 0.42)
    for seed in range(3):
        write(tmp_path, f"mini-imagenet/paper/map-dlm/{seed}", ours[seed])
        write(tmp_path, f"mini-imagenet/paper/siamese/{seed}", theirs[seed])
    table = differences(tmp_path, "mini-imagenet", [("map-dlm", "siamese"), ("map-dlm", "map-ssvm")])
    interval = 100 * 2.78 * ((stdev(ours) ** 2 + stdev(theirs) ** 2) / 3) ** 0.5  # of four degrees of freedom
    assert cells(table, "mAP-DLM minus siamese, here")[0] == f"+11.00 ± {interval:.2f}" == "+11.00 ± 3.59"
    assert cells(table, "mAP-DLM minus siamese, as published") == ["+1.9", "–", "+1.7", "+1.0"]
    assert "mAP-DLM minus mAP-SSVM, here" not in table  # of which there is no run
    (tmp_path / "mini-imagenet/paper/siamese/2.json").unlink()
    pooled = (2 * stdev(ours) ** 2 + stdev(theirs[:2]) ** 2) / 3
    interval = 100 * 3.18 * (pooled * (1 / 3 + 1 / 2)) ** 0.5
    table = differences(tmp_path, "mini-imagenet", [("map-dlm", "siamese")])
    assert cells(table, "mAP-DLM minus siamese, here")[0] == f"+11.50 ± {interval:.2f}"


def test_ahead_of_others(tmp_path):
    write(tmp_path, "mini-imagenet/paper/map-dlm/0", 0.5)
    write(tmp_path, "mini-imagenet/systems/maml/0", 0.45)
    table = ahead_of_others(tmp_path, "mini-imagenet")
    assert cells(table, "MAML")[:2] == ["+1.6", "+5.0"]
    assert cells(table, "siamese") == ["+1.9", "–", "–", "–"]
    assert not any(f"| {name} |" in table for name in ("mAP-DLM", "mAP-SSVM"))


def test_fewer_episodes(tmp_path):
    assert fewer_episodes(tmp_path) == "Not measured yet."
    for seed, (then, now) in enumerate(((0.52, 0.50), (0.50, 0.51))):
        write(tmp_path, f"mini-imagenet/earlier/siamese/{seed}", then, seed=seed)
        write(tmp_path, f"mini-imagenet/paper/siamese/{seed}", now, seed=seed)
    write(tmp_path, "mini-imagenet/earlier/best-map-dlm/0", 0.6)
    table = fewer_episodes(tmp_path)
    assert set(cells(table, "2 runs of the paper's recipe, trained again")) == {"+0.50 (-1.00 to +2.00)"}
    assert cells(table, "`conv4-mini-imagenet`")[0] == "+7.96"  # 52.04 on its card


def test_nothing_to_compare():
    assert less([1.0, None, 2.0], [0.5, 1.0, None]) == ["+0.5", "–", "–"]


@pytest.mark.parametrize("name", ["omniglot", "mini-imagenet"])
def test_of_the_runs_that_are_there(name):
    lines = learning_speed(RESULTS, name).splitlines()[2:]
    updates = [[int(cell.split()[0].replace(",", "")) for cell in line.split("|")[4:6]] for line in lines]
    assert all(ours < siamese for siamese, ours in updates)  # what docs/paper.md says of them
