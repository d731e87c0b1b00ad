"""MAML asked as its authors' code asks it: the episodes, what is written, and the table."""

import json

import pytest
from small import small

from benchmarks import few_queries
from benchmarks.few_queries import task_of
from benchmarks.tables import systems
from rankshot import data, fewshot
from rankshot.models import from_pretrained
from rankshot.reproduce.systems import config_of, presets
from rankshot.training import train


def test_as_many_queries_of_a_class_as_labelled_images():
    tasks = {label: task_of(config_of("omniglot", "maml", label)) for label in presets("omniglot", "maml")}
    assert {label: (task.way, task.shot, task.per_class) for label, task in tasks.items()} == {
        "maml": (5, 1, 2),
        "maml-20-way": (20, 1, 2),
        "maml-5-shot": (5, 5, 10),
        "maml-20-way-5-shot": (20, 5, 10),
    }


def test_what_is_measured_and_told(tmp_path, data_root, monkeypatch):
    config = small(
        method="maml", tasks=2, batch_classes=5, batch_size=40, updates=2, validate_every=0, rotations=True, root=data_root
    )
    monkeypatch.setattr(few_queries, "DATA", ("omniglot",))
    monkeypatch.setattr(few_queries, "EPISODES", 3)
    monkeypatch.setattr(few_queries, "FOLDER", tmp_path)
    monkeypatch.setattr(few_queries, "PLACE", tmp_path / "few-queries.json")
    monkeypatch.setattr(few_queries, "presets", lambda name, method: {"maml": name})
    monkeypatch.setattr(few_queries, "config_of", lambda *_: config)
    with pytest.raises(FileNotFoundError):
        few_queries.main(str(tmp_path / "runs"), str(data_root))
    run = "omniglot/systems/maml/0"
    train(config, tmp_path / "runs" / run)
    few_queries.main(str(tmp_path / "runs"), str(data_root))
    written = json.loads((tmp_path / "few-queries.json").read_text())
    images = data.load("glyphs", "test", data_root).with_rotations()
    task = fewshot.Classification(5, 1, per_class=2)
    found = fewshot.evaluate(from_pretrained(tmp_path / "runs" / run), images, [task], 3, few_queries.SEED)
    assert written["runs"] == {run: fewshot.summary(found)}
    assert (written["episodes"], written["seed"]) == (3, few_queries.SEED)

    monkeypatch.setattr(systems, "FOLDER", tmp_path)
    monkeypatch.setattr(
        systems, "runs_of", lambda *_: [{"test": {"running": {str(task): {"mean": 0.5, "interval": 0.01}}}}]
    )
    theirs = f"{100 * found[0].mean:.2f} ± {100 * found[0].interval:.2f}"
    assert systems.few_queries().splitlines()[-1] == f"| Omniglot, 1-shot 5-way | 98.7 | 50.00 ± 1.00 | {theirs} |"
    monkeypatch.setattr(systems, "runs_of", lambda *_: [])
    assert systems.few_queries().splitlines()[-1] == f"| Omniglot, 1-shot 5-way | 98.7 | – | {theirs} |"
    (tmp_path / "few-queries.json").unlink()
    assert systems.few_queries() == "Not measured yet."
