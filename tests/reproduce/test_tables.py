"""Tables and figures from records; and the pages that are committed are made from the records beside them."""

import json
import shutil
from pathlib import Path

import pytest

from rankshot.reproduce import study_tables
from rankshot.reproduce.figures import FIGURES, Chart, alpha_curves, batch_curves, batch_sizes, draw, draw_all
from rankshot.reproduce.photographs import tables as of_photographs
from rankshot.reproduce.plan import BENCHMARKS, plan
from rankshot.reproduce.published import COLUMNS
from rankshot.reproduce.tables import (
    advantage_table,
    again_table,
    all_tables,
    alpha_table,
    main_table,
    seeds_in,
    spread_table,
    trials_table,
)

RESULTS = Path(__file__).parents[2] / "results"


def record(mean, tasks, curve=True, interval=0.001):
    of = {task: {"mean": mean, "interval": interval} for task in tasks}
    worse = {task: {"mean": mean - 0.1, "interval": interval} for task in tasks}
    points = [{"update": update, **of} for update in (500, 1000)] if curve else []
    both = {"running": worse, "batch": of}
    return {"test": both, "curve": points, "validation": both, "config": {}, "questions": {"episodes": 600}}


@pytest.fixture
def results(tmp_path):
    """A record for every planned run of mini-ImageNet, in which mAP-DLM's seeds give 50, 51 and 52."""
    tasks = ["1-shot 5-way", "5-shot 5-way", "retrieval 5-way", "retrieval 16-way", "retrieval 20-way", "1-shot 16-way"]
    for run in plan("mini-imagenet"):
        seed = int(run.name[-1]) if run.name[-2] == "/" else 0
        mean = 0.5 + 0.01 * seed if "paper/map-dlm" in run.name else 0.4
        path = tmp_path / f"{run.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record(mean, tasks)))
    return tmp_path


def test_means_over_seeds_beside_the_published_figures(results):
    lines = main_table(results, "mini-imagenet", "batch").splitlines()
    assert "| mAP-DLM, as published | 50.28 | 63.70 | **52.96** | 23.68 |" in lines
    assert "| mAP-DLM, here, the paper's recipe | **51.00** | 51.00 | 51.00 | **51.00** |" in lines
    assert "| Smooth-AP, here, the paper's recipe | 40.00 | 40.00 | 40.00 | 40.00 |" in lines
    assert lines[-1] == "Means in %: 3 seeds per row, 600 episodes per task, batch norm with batch statistics."
    assert "| mAP-DLM, the paper's recipe | 51.00 ± 2.48 (1.00) |" in spread_table(results, "mini-imagenet", "batch")


def asked(path, episodes, **changed):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "questions": {"episodes": episodes, **changed}}))


def test_seeds_that_were_asked_fewer_episodes_are_left_out(results):
    for seed in (0, 1):
        asked(results / f"mini-imagenet/paper/map-dlm/{seed}.json", 10_000)
    lines = main_table(results, "mini-imagenet", "batch").splitlines()
    assert "| mAP-DLM, here, the paper's recipe (2 seeds) | **50.50** | 50.50 | 50.50 | **50.50** |" in lines
    assert "2 or 3 seeds per row, 600 or 10,000 episodes per task" in lines[-1]


def means_of(results, folder, norm):
    return [record["test"]["batch"]["1-shot 5-way"]["mean"] for record in seeds_in(results, folder, norm)]


def test_each_norm_has_episodes_of_its_own(results):
    """A seed that was asked fewer by batch statistics is left out there alone."""
    folder = "mini-imagenet/paper/map-dlm"
    for seed, few in enumerate((200, 500, 500)):
        asked(results / f"{folder}/{seed}.json", 10_000, batch_episodes=few)
    assert means_of(results, folder, "running") == [0.5, 0.51, 0.52]
    assert means_of(results, folder, "batch") == [0.51, 0.52]
    asked(results / f"{folder}/0.json", 600)  # of both
    assert means_of(results, folder, "running") == [0.51, 0.52]
    assert means_of(results, folder, "batch") == [0.5]


def test_only_seeds_that_were_asked_the_same_episodes_are_averaged(results):
    folder = "mini-imagenet/paper/map-dlm"
    for seed, of_episodes in enumerate((0, 100, 100)):
        asked(results / f"{folder}/{seed}.json", 10_000, seed=of_episodes)
    assert means_of(results, folder, "running") == [0.51, 0.52]
    asked(results / f"{folder}/1.json", 600, seed=100)
    asked(results / f"{folder}/2.json", 600, seed=100)
    assert means_of(results, folder, "running") == [0.5]  # more episodes go before more seeds


def test_a_row_may_be_asked_by_running_statistics_alone(results):
    for path in (results / "mini-imagenet/best/map-dlm").glob("*.json"):
        asked(path, 10_000, batch_episodes=0)
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, "test": {"running": content["test"]["running"]}}))
    assert "mAP-DLM, here, our recipe" in main_table(results, "mini-imagenet", "running")
    assert "mAP-DLM, here, our recipe" not in main_table(results, "mini-imagenet", "batch")
    asked(path, 10_000)
    with pytest.raises(ValueError, match="should hold a mean and an interval of every task, by every norm"):
        main_table(results, "mini-imagenet", "batch")


def test_alpha(results):
    lines = alpha_table(results, "batch").splitlines()
    assert "| mAP-DLM, alpha 1, as published | 41.64 | 50.40 | 45.21 | 17.30 |" in lines
    assert "| mAP-DLM, alpha 1, here (3 seeds) | 40.00 | 40.00 | 40.00 | 40.00 |" in lines
    assert "| mAP-DLM, alpha 10, here (3 seeds) | 51.00 | 51.00 | 51.00 | 51.00 |" in lines


def test_the_advantage_over_pairs(results):
    """Of the kept networks on episodes of their own: a single validation while learning goes up and down by chance."""
    path = results / "mini-imagenet/paper/map-dlm/0.json"
    content = json.loads(path.read_text())
    content["validation"]["running"]["retrieval 16-way"]["mean"] = 0.45
    path.write_text(json.dumps({**content, "curve": []}))
    lines = advantage_table(results).splitlines()
    columns = (
        f"{task}: {each}" for task in ("1-shot 5-way", "retrieval 16-way") for each in ("mAP-DLM", "siamese", "advantage")
    )
    assert lines[0] == f"| batch size | {' | '.join(columns)} |"
    assert lines[2] == "| 16 | 30.00 ± 0.10 | 30.00 ± 0.10 | +0.00 | 30.00 ± 0.10 | 30.00 ± 0.10 | +0.00 |"
    assert lines[-1] == "| 128 | 40.00 ± 0.10 | 30.00 ± 0.10 | +10.00 | 45.00 ± 0.10 | 30.00 ± 0.10 | +15.00 |"


def test_the_advantage_needs_both_runs_and_their_validation(results):
    (results / "mini-imagenet/batch/siamese-16.json").unlink()
    path = results / "mini-imagenet/batch/map-dlm-32.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "validation": None}))
    assert [line.split()[1] for line in advantage_table(results).splitlines()[2:]] == ["64", "128"]


def test_a_row_once_more(results):
    assert again_table(results, "mini-imagenet") is None
    shutil.copytree(results / "mini-imagenet" / "paper" / "siamese", results / "mini-imagenet" / "earlier" / "siamese")
    shutil.copytree(results / "mini-imagenet" / "paper" / "map-dlm", results / "mini-imagenet" / "earlier" / "map-dlm")
    (results / "mini-imagenet" / "paper" / "map-dlm" / "2.json").unlink()
    lines = again_table(results, "mini-imagenet").splitlines()
    assert "| mAP-DLM, batch statistics, 1-shot 5-way | 51.00 | 50.50 | -0.50 | 2.00 |" in lines
    assert lines[0].endswith("| two deviations over seeds and both intervals over episodes |")
    assert len(lines) == 2 + 2 * 2 * 4  # two methods, two norms, four tasks


def test_other_episodes_may_make_a_difference_too(results):
    folders = [results / "mini-imagenet" / name / "map-dlm" for name in ("earlier", "paper")]
    shutil.copytree(folders[1], folders[0])
    for folder, interval in zip(folders, (0.03, 0.04), strict=True):
        for path in folder.glob("*.json"):
            tasks = COLUMNS["mini-imagenet"]
            path.write_text(json.dumps(record(0.5 + 0.06 * int(path.stem), tasks, interval=interval)))
    row = "| mAP-DLM, batch statistics, 1-shot 5-way | 56.00 | 56.00 | +0.00 | 13.00 |"  # 12, 3 and 4
    assert row in again_table(results, "mini-imagenet")
    assert "## A row run again: mini-ImageNet" in all_tables(results)
    for seed in (1, 2):
        (folders[0] / f"{seed}.json").unlink()
    assert "| mAP-DLM, batch statistics, 1-shot 5-way | 50.00 | 56.00 | +6.00 | – |" in again_table(
        results, "mini-imagenet"
    )


def test_nothing_measured_yet(tmp_path):
    assert main_table(tmp_path, "omniglot", "batch") is None
    assert trials_table(tmp_path, "cub") == "No trial yet."
    assert draw_all(tmp_path, tmp_path / "figures") == []
    assert "## " not in all_tables(tmp_path)


def test_trials_tell_what_they_changed_the_best_first(tmp_path):
    folder = tmp_path / "trials" / "cub"
    folder.mkdir(parents=True)
    settings = {"data": "cub", "batch_classes": 8, "updates": 10, "validation_episodes": 7, "alpha": 3.0}
    settings["augment"] = ["flip", "crop"]
    for name, mean, change in (("a", 0.4, {}), ("b", 0.5, {"method": "smooth-ap", "alpha": None})):
        content = record(mean, ["1-shot 20-way", "retrieval 20-way"])
        (folder / f"{name}.json").write_text(json.dumps({**content, "config": {**settings, **change}}))
    rows = trials_table(tmp_path, "cub").splitlines()[2:4]
    assert rows == [
        "| augment flip + crop, method smooth-ap | 10 | 7 | 50.00 | 50.00 |",
        "| augment flip + crop, alpha 3.0 | 10 | 7 | 40.00 | 40.00 |",
    ]


def test_what_is_no_record(tmp_path):
    path = tmp_path / "omniglot/paper/map-dlm/0.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"0\.json is no record of a run: it should hold"):
        all_tables(tmp_path)


@pytest.mark.slow
def test_figures(results, tmp_path):
    from PIL import Image

    written = draw_all(results, tmp_path / "figures")
    assert [path.stem for path in written] == [name for name in FIGURES if "omniglot" not in name]
    for path in written:
        with Image.open(path) as picture:
            assert picture.size[0] > 800
    again = draw_all(results, tmp_path / "again")
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]


def test_batch_sizes_are_compared_at_the_updates_that_all_runs_have(results):
    def change(name, change):
        path = results / f"mini-imagenet/{name}.json"
        path.write_text(json.dumps({**(content := json.loads(path.read_text())), "curve": change(content["curve"])}))

    longer = [{**json.loads((results / "mini-imagenet/paper/siamese/0.json").read_text())["curve"][0], "update": 1500}]
    change("batch/siamese-16", lambda curve: [*curve, *longer])
    change("batch/siamese-32", lambda curve: [{**curve[0], "retrieval 16-way": {"mean": 0.2}}, curve[1]])
    for run in ("batch/map-ssvm-16", "batch/map-ssvm-32", "batch/smooth-ap-64"):
        (results / f"mini-imagenet/{run}.json").unlink()
    chart = batch_sizes(results)
    assert chart.note == (
        "mean of validations at 500 to 1,000 updates\nnot measured yet: mAP-SSVM (16, 32), Smooth-AP (64)"
    )
    sizes = {name: [point["batch size"] for point in points] for name, points in chart.lines.items()}
    all_of_them = [16, 32, 64, 128]
    assert sizes == {"mAP-DLM": all_of_them, "mAP-SSVM": [64, 128], "siamese": all_of_them, "Smooth-AP": [16, 32, 128]}
    values = [point["retrieval 16-way"]["mean"] for point in chart.lines["siamese"]]
    assert values == pytest.approx([0.4, 0.3, 0.4, 0.4])
    assert (results / "figures" / "batch-sizes.png") in draw_all(results, results / "figures")


def test_a_method_of_one_size_is_no_line(results):
    """Nor does its length tell where the others are compared."""
    for size in (16, 32, 64):
        (results / f"mini-imagenet/batch/smooth-ap-{size}.json").unlink()
    path = results / "mini-imagenet/paper/smooth-ap/0.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "curve": content["curve"][:1]}))
    chart = batch_sizes(results)
    assert list(chart.lines) == ["mAP-DLM", "mAP-SSVM", "siamese"]
    assert chart.note == "mean of validations at 500 to 1,000 updates\nnot measured yet: Smooth-AP (16, 32, 64)"
    for path in (results / "mini-imagenet/batch").glob("*.json"):
        path.unlink()
    assert batch_sizes(results).lines == {}


def test_lines_that_lack_a_task(tmp_path, monkeypatch):
    """One that is in the first panel alone is in the legend, and a panel may be empty."""
    from matplotlib.axes import Axes

    named = []
    monkeypatch.setattr(Axes, "legend", lambda panel, handles, labels, **_: named.extend(labels))

    def line(*tasks):
        return [{"update": update, **{task: {"mean": 0.5} for task in tasks}} for update in (500, 1000)]

    chart = Chart(
        {"a": line("1-shot 5-way"), "b": line("1-shot 5-way", "retrieval 5-way")}, ["1-shot 5-way", "retrieval 5-way"]
    )
    assert draw(chart, tmp_path / "a.png").is_file()
    assert named == ["a", "b"]
    assert draw(chart._replace(tasks=["1-shot 5-way", "5-shot 5-way"]), tmp_path / "b.png").is_file()


def test_sizes_that_are_not_measured_are_named(results):
    assert batch_curves(results, "siamese").note == ""
    (results / "mini-imagenet/batch/siamese-32.json").unlink()
    assert batch_curves(results, "siamese").note == "not measured yet: siamese, |B| = 32"


def test_alphas_are_drawn_as_soon_as_there_are_two(results):
    """Each in the colour that it will have when all are there."""
    path = results / "figures" / "alpha-ssvm-mini-imagenet.png"
    for alpha in (1, 3):
        (results / f"mini-imagenet/alpha/map-ssvm-{alpha}/0.json").unlink()
    lines = alpha_curves(results, "mini-imagenet", "map-ssvm").lines
    assert list(lines) == ["alpha 1", "alpha 3", "alpha 10", "alpha 30"]
    assert [bool(points) for points in lines.values()] == [False, False, True, True]
    assert alpha_curves(results, "mini-imagenet", "map-ssvm").note == "not measured yet: alpha 1, alpha 3"
    assert path in draw_all(results, path.parent)
    (results / "mini-imagenet/alpha/map-ssvm-30/0.json").unlink()
    assert path not in draw_all(results, path.parent)


def test_the_committed_tables_are_those_of_the_committed_records():
    pages = (all_tables(RESULTS), study_tables.page(RESULTS), of_photographs.page(RESULTS))
    assert (RESULTS / "tables.md").read_text() == "\n".join(pages)
    for name in BENCHMARKS:
        for norm in ("running", "batch"):
            table = main_table(RESULTS, name, norm)
            assert table is None or all(task in table for task in COLUMNS[name])
