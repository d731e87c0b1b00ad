"""The runs of the tables are the paper's, and what is recorded was made by them."""

from pathlib import Path

import pytest

from rankshot.methods import Context, make_method
from rankshot.reproduce.job import result_of, run_in
from rankshot.reproduce.plan import BATCH_SIZES, BENCHMARKS, METHODS, SEEDS, alphas, batch_run, batch_sizes, plan, rows
from rankshot.reproduce.published import COLUMNS, PUBLISHED
from rankshot.reproduce.studies import studies
from rankshot.reproduce.systems import systems

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_run_can_be_made(name):
    runs = plan(name)
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        assert run.name.startswith(f"{name}/")
        make_method(run.config.method, Context(64, 20, run.config.batch.classes, run.config.batch.size))
    assert [run.name.split("/")[1] for run in runs][: len(METHODS) * len(SEEDS)] == ["paper"] * 12


def test_the_paper_s_recipes():
    for method in METHODS:
        omniglot, photographs = (BENCHMARKS[name].config("paper", method) for name in ("omniglot", "mini-imagenet"))
        assert (omniglot.batch.classes, omniglot.batch.size, omniglot.run.updates) == (16, 128, 18_000)
        assert (omniglot.data.split, omniglot.data.rotations) == ("trainval", True)
        assert omniglot.optimiser.schedule == "constant"
        assert omniglot.first_learning_rate == (0.1 if method == "siamese" else 0.001)
        assert (photographs.batch.classes, photographs.batch.size) == (8, 128)
        assert photographs.run.updates == (24_000 if method == "siamese" else 22_000)
        how = photographs.optimiser
        assert (how.schedule, how.decay, how.decay_every) == ("step", 0.75, 2000)
        assert photographs.first_learning_rate == (0.01 if method == "siamese" else 0.001)
        assert photographs.data.augment == ()
        for config in (omniglot, photographs):
            if method.startswith("map-"):
                assert {
                    "alpha": 10.0,
                    "epsilon": 1.0,
                    "smoothing": 0.0,
                    "coarse_weight": 0.0,
                }.items() <= config.method.settings.items()
        assert photographs.method.settings.get("epsilon", 1.0) == 1.0
    assert {run.questions.episodes for name in BENCHMARKS for run in plan(name) if run.questions} == {10_000}
    assert {run.questions.by("batch") for run in rows("cub", "best")} == {0}


def test_one_of_each_row_comes_before_the_second_of_any():
    assert [run.name.rsplit("/", 1)[1] for run in rows("cub", "paper")] == ["0"] * 4 + ["1"] * 4 + ["2"] * 4


def test_the_studies():
    """Both mAP methods with every alpha but the rows' own, all methods with every batch size but the rows' own."""
    names = {f"{method}-{alpha}" for method in ("map-dlm", "map-ssvm") for alpha in (1, 3, 30)}
    for data in ("omniglot", "mini-imagenet"):
        of_seed = [run.name.removesuffix("/0") for run in alphas(data) if run.name.endswith("/0")]
        assert sorted(of_seed) == sorted(f"{data}/alpha/{name}" for name in names)
    assert {run.config.data.split for run in alphas("omniglot")} == {"train"}
    assert alphas("cub") == batch_sizes("omniglot") == []
    sizes = {run.name: run.config.batch.size for run in batch_sizes("mini-imagenet")}
    assert sizes == {batch_run(method, size): size for method in METHODS for size in BATCH_SIZES[:-1]}
    rows_too = {run.name: run.config.batch.size for run in plan("mini-imagenet")}
    assert all(rows_too[batch_run(method, BATCH_SIZES[-1])] == BATCH_SIZES[-1] for method in METHODS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_what_is_recorded_was_made_by_the_plan(name):
    runs = [*plan(name), *systems(name), *studies(name)]
    for run in runs:
        record = result_of(run, RESULTS)  # complains about other settings
        if record is not None:
            assert record["name"] == run.name
            assert {"commit", "hardware", "date", "updates_per_second", "torch"} <= record.keys()
    planned = {f"{run.name}.json" for run in runs}
    recorded = {str(path.relative_to(RESULTS)) for path in (RESULTS / name).rglob("*.json")}
    assert {each for each in recorded if "/earlier/" not in each} <= planned


@pytest.mark.parametrize("data", ["omniglot", "mini-imagenet"])
def test_what_earlier_code_made_is_of_the_same_runs(data):
    made = [path for method in METHODS for path in (RESULTS / data / "earlier" / method).glob("*.json")]
    assert made
    for path in made:
        earlier, now = run_in(path), run_in(RESULTS / data / "paper" / path.parent.name / path.name)
        assert (earlier.name, earlier.config) == (now.name, now.config)


def test_published_figures_have_a_column_each():
    for name, methods in PUBLISHED.items():
        assert all(len(figures) == len(COLUMNS[name]) for figures in methods.values())
