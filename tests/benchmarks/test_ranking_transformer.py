"""`RankingTransformer` beside NCA and LMNN: how it is measured, divided, limited and told."""

import json
import math

import numpy as np
import pytest
import torch

from benchmarks import ranking_transformer as benchmark
from benchmarks.tables import ranking_transformer as tables
from rankshot.adaptation.measuring import ranked

FOREVER = math.inf


def slowly(vectors, labels):
    """mAP and 1-nearest-neighbour accuracy by Euclidean distance, as one says them."""
    precisions, hits = [], []
    for query in range(len(vectors)):
        others = [each for each in range(len(vectors)) if each != query]
        others.sort(key=lambda other: np.linalg.norm(vectors[query] - vectors[other]))
        relevant = [labels[other] == labels[query] for other in others]
        if any(relevant):
            found = [sum(relevant[: at + 1]) / (at + 1) for at, is_relevant in enumerate(relevant) if is_relevant]
            precisions.append(sum(found) / len(found))
            hits.append(relevant[0])
    return np.mean(precisions), np.mean(hits)


def test_euclidean_measure_is_that_of_the_slow_one(monkeypatch):
    random = np.random.default_rng(0)
    vectors, labels = random.normal(3, 1, (40, 5)), np.append(random.integers(0, 4, 39), 9)  # the last is alone
    monkeypatch.setattr(benchmark, "VALUES_AT_ONCE", 300)  # several chunks
    found = benchmark.ranked_by_distance(torch.from_numpy(vectors), torch.from_numpy(labels))
    assert found == pytest.approx(slowly(vectors, labels))


def test_distances_rank_unit_vectors_alike():
    random = np.random.default_rng(1)
    vectors, labels = torch.from_numpy(random.normal(size=(60, 6))), torch.from_numpy(random.integers(0, 5, 60))
    units = vectors / vectors.norm(dim=1, keepdim=True)
    assert benchmark.ranked_by_distance(units, labels) == pytest.approx(ranked(vectors, labels))


@pytest.mark.parametrize("seed", range(3))
def test_no_class_is_on_both_sides(seed):
    found = benchmark.split_of(benchmark.DATA_SETS["digits"], seed)
    assert len(set(found.y_learn)) == len(set(found.y_test)) == 5
    assert not set(found.y_learn) & set(found.y_test)
    assert np.abs(found.X_learn.mean(0)).max() < 1e-9  # standardised by what is learned from
    assert np.abs(found.X_test.mean(0)).max() > 0.1


@pytest.mark.parametrize("name", ["wine", "breast-cancer"])
def test_held_out_rows_are_half_of_every_class(name):
    found = benchmark.split_of(benchmark.DATA_SETS[name], 0)
    learned, tested = (np.bincount(labels) for labels in (found.y_learn, found.y_test))
    assert np.abs(learned - tested).max() <= 1


def test_splits_differ_by_their_seed():
    y = np.repeat(np.arange(20), 3)
    first, again, other = (benchmark.learned_rows(y, True, seed) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


@pytest.fixture
def split(tmp_path):
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 10)
    X = random.normal(size=(40, 3)) + labels[:, None]
    path = tmp_path / "split.npz"
    np.savez(path, X_learn=X, y_learn=labels, X_test=X + 0.1, y_test=labels)
    return path


def test_a_fit_in_time_is_measured(tmp_path, split):
    told = benchmark.fit("nca", split, tmp_path / "fit", benchmark.Limits(60, FOREVER, 16))
    assert not told["reached_limit"]
    assert 0 < told["seconds"] < 60 == told["seconds_given"]
    assert told["ranked"].keys() == {"cosine", "euclidean"}
    assert 0.25 < told["ranked"]["euclidean"]["map"] <= 1


@pytest.mark.parametrize("has_map", [False, True])
def test_a_fit_that_is_killed_is_told(tmp_path, split, monkeypatch, has_map):
    """Without figures, but for a method that keeps its map as it goes."""
    keep = 'np.save(sys.argv[3] + "/map.npy", np.eye(3)[:2])' if has_map else "pass"
    worker = tmp_path / "endless.py"
    worker.write_text(f'import sys, time\nimport numpy as np\n{keep}\nprint("begins", flush=True)\ntime.sleep(60)\n')
    monkeypatch.setattr(benchmark, "WORKER", worker)
    told = benchmark.fit("nca", split, tmp_path / "fit", benchmark.Limits(0.2, FOREVER, 16))
    assert told["reached_limit"]
    assert told["seconds"] == told["seconds_given"] == 0.2
    assert ("ranked" in told) is has_map
    if has_map:
        found = benchmark.opened(split)
        assert told["ranked"] == benchmark.measured(found.X_test[:, :2], found.y_test)


def test_a_fit_without_enough_memory_is_told(tmp_path, split, monkeypatch):
    worker = tmp_path / "large.py"
    worker.write_text('print("begins")\nprint(\'{"seconds": 1.0, "out_of_memory": true}\')\n')
    monkeypatch.setattr(benchmark, "WORKER", worker)
    told = benchmark.fit("lmnn", split, tmp_path / "fit", benchmark.Limits(60, FOREVER, 16))
    assert told["out_of_memory"]
    assert "ranked" not in told


def test_a_fit_that_fails_is_no_result(tmp_path, split, monkeypatch):
    worker = tmp_path / "failing.py"
    worker.write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(benchmark, "WORKER", worker)
    with pytest.raises(RuntimeError, match="lmnn on split ended with status 3"):
        benchmark.fit("lmnn", split, tmp_path / "fit", benchmark.Limits(60, FOREVER, 16))


@pytest.mark.parametrize(("found", "done"), [({}, True), ({"reached_limit": True}, False)])
def test_finished_fits_are_not_repeated(tmp_path, monkeypatch, found, done):
    """But one that was killed is, where it may have longer now."""
    monkeypatch.setattr(benchmark, "KEPT", tmp_path)
    task = benchmark.Task("wine", 0, "nca")
    assert not benchmark.is_done(task, benchmark.Limits(100, FOREVER, 16))
    task.path.parent.mkdir()
    task.path.write_text(json.dumps({"reached_limit": False, "seconds_given": 50, **found}))
    assert benchmark.is_done(task, benchmark.Limits(100, FOREVER, 16)) is done
    assert benchmark.is_done(task, benchmark.Limits(50, FOREVER, 16))


def test_ours_is_repeated_when_it_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "KEPT", tmp_path)
    task, limits = benchmark.Task("wine", 0, "ours"), benchmark.Limits(100, FOREVER, 16)
    task.path.parent.mkdir()
    for source, done in ((benchmark.source(), True), ("another", False)):
        task.path.write_text(json.dumps({"reached_limit": False, "seconds_given": 50, "source": source}))
        assert benchmark.is_done(task, limits) is done


def a_fit(found, seconds, **more):
    return {"map": found, "nearest": found, "seconds": seconds, "seconds_given": 1800, "reached_limit": False, **more}


def results():
    about = {"processor": "a processor", "torch": "2", "date": "2026-01-01", "commit": "0" * 40, "memory_gib": 16}
    head = {"rows": 5000, "dimensions": 64, "held_out": "classes"}
    as_it_is = {"map": 0.1, "nearest": 0.2, "reached_limit": False}
    killed = {"seconds": 1800, "seconds_given": 1800, "reached_limit": True}
    found = {
        "digits": {
            **head,
            "rows": 900,
            "methods": {"as_it_is": as_it_is, "ours": a_fit(0.5, 10), "nca": a_fit(0.625, 2, versions=["scikit-learn 1"])},
        },
        "omniglot-conv4": {
            **head,
            "methods": {"as_it_is": as_it_is, "ours": a_fit(0.5, 10), "nca": a_fit(0.4, 200), "lmnn": killed},
        },
        "mini-imagenet-conv4": {
            **head,
            "methods": {
                "as_it_is": as_it_is,
                "ours": a_fit(0.5, 10),
                "nca": {**a_fit(0.4, 1800), "reached_limit": True},
                "lmnn": {**killed, "seconds": 3, "reached_limit": False, "out_of_memory": True},
            },
        },
    }
    return about | {"data_sets": found, "summary": benchmark.in_short(found)}


def test_summary_counts_data_sets_and_times_those_of_many_rows():
    assert results()["summary"] == {
        "at_least_the_best_rival": ["omniglot-conv4", "mini-imagenet-conv4"],
        "worse": ["digits"],
        "nca_takes_times_as_long": {"omniglot-conv4": 20, "mini-imagenet-conv4": 180},
    }


def test_the_table_tells_what_is_worse_and_what_had_no_end(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    (tmp_path / "ranking_transformer.json").write_text(json.dumps(results()))
    text = tables.ranking_transformer()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].endswith("| 10.0 / 20.0 | **62.5 / 62.5** | – | 50.0 / 50.0 | 2 | – | 10 | 0.2x |")
    assert lines[3].endswith("| 10.0 / 20.0 | 40.0 / 40.0 | – | **50.0 / 50.0** | 200 | > 1,800 | 10 | 20x |")
    assert lines[4].endswith("| 10.0 / 20.0 | 40.0 / 40.0 | – | **50.0 / 50.0** | > 1,800 | – | 10 | > 180x |")
    assert "at least the best rival's on 2 of 3." in text
    assert "worse: digits, 12 points of mAP behind NCA; digits, 12 points of 1-nearest-neighbour" in text
    assert "NCA is faster on digits." in text
    assert "LMNN on Omniglot, Conv4 (30 minutes by the clock)" in text
    assert "NCA on mini-ImageNet, Conv4 (30 minutes by the clock, as far as it had come)" in text
    assert "More than 16 GiB of memory were needed by LMNN on mini-ImageNet, Conv4." in text
