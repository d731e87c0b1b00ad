"""One run, from nothing to its json: trained, measured on classes never seen by both norms, recorded."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import nn

from rankshot.data import ImageSet
from rankshot.fewshot import (
    Answerer,
    Classification,
    HasRule,
    Retrieval,
    Task,
    can_answer,
    evaluate,
    pixels_for,
    summary,
    tasks_for,
)
from rankshot.files import write_whole
from rankshot.hardware import commit, hardware
from rankshot.models import Mirrored, from_pretrained
from rankshot.schema import read_json
from rankshot.training import TrainConfig, train
from rankshot.training.assembly import load, where_to_train
from rankshot.training.callbacks import Callback
from rankshot.training.run_folder import MADE, read_metrics, status_of
from rankshot.training.validation import validation_tasks
from rankshot.version import __version__

from . import padded_lists  # noqa: F401  # registers map-padded, which some runs and their records name
from .records import write_record
from .retrieval_metrics import EPISODES, by_each_metric

NORMS = ("running", "batch")
GONE = ("noise",)  # settings of early trials
# Settings of questions that a record which is to be asked again may differ in. The seed is one of them, since records that
# were asked fewer episodes are earlier ones, whose episodes were drawn from another seed.
WHICH_EPISODES = ("episodes", "batch_episodes", "seed")
PLACE = ("root", "device", "compile")  # settings that say where and how a run happens, and not what it is


@dataclass(frozen=True)
class Questions:
    """What a trained network is asked on the test classes.

    episodes        of every task
    batch_episodes  the same by batch statistics, where every episode is embedded anew; None: as many; 0: none
    retrieval_metrics   by which retrieval among the most classes is judged too; None: by mAP alone
    tasks           of all ways and shots only these, by their names; None: all of them
    """

    ways: tuple[int, ...] = (5, 20)
    shots: tuple[int, ...] = (1, 5)
    episodes: int = 1000
    seed: int = 0
    batch_episodes: int | None = None
    retrieval_metrics: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.tasks, str) or self.tasks == ():
            raise ValueError(f"tasks must be names such as ('1-shot 5-way',), or None for all of them, got {self.tasks!r}")

    def to_json(self) -> dict[str, Any]:
        """What is not asked is not told: so earlier records have it."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {name: value for name, value in content.items() if value is not None}

    def by(self, norm: str) -> int:
        """Episodes of a task."""
        return self.batch_episodes if norm == "batch" and self.batch_episodes is not None else self.episodes

    def of(self, images: ImageSet) -> list[Task]:
        there_are = {str(task): task for task in tasks_for(images, self.ways, self.shots)}
        for name in self.tasks or ():
            if name not in there_are:
                raise ValueError(f"there is no task {name!r} among {', '.join(map(repr, there_are))}")
        return [task for name, task in there_are.items() if self.tasks is None or name in self.tasks]


VALIDATION = Questions(episodes=3000, seed=1000, batch_episodes=100)  # others than those that chose the network to keep


@dataclass(frozen=True)
class Run:
    """Something to train, and what to ask it then.

    name       its place below results/, without .json
    questions  about the test classes; None: nothing is asked about them
    validation_norms   by which the kept network is measured on the validation classes, where there are such classes
    """

    name: str
    config: TrainConfig
    questions: Questions | None
    validation_norms: tuple[str, ...] = ("running",)


def perform(run: Run, folder: Path, results: Path, *, side_by_side: int = 1) -> dict[str, Any]:
    """Train in `folder` (where a run that was stopped goes on), measure, and write the json.

    side_by_side   how many runs share the machine, which its speed depends on; with more than one this one is silent
    """
    if run.questions is not None:
        run.questions.of(load(run.config, "test"))  # complains now, and not when all has been learned
    made = made_by(folder, run.config.run.updates, side_by_side)
    status = train(run.config, folder, resume=True, progress=Callback() if side_by_side > 1 else None)
    curve = [{"update": line["update"], **line["validation"]} for line in read_metrics(folder) if "validation" in line]
    model = from_pretrained(folder).to(where_to_train(run.config)[0])
    here = {"commit": commit(), "hardware": hardware()}
    record: dict[str, Any] = {
        "name": run.name,
        "config": run.config.changed(root=None, device="auto").to_json(),
        "questions": None if run.questions is None else run.questions.to_json(),
        "kept_update": status.best_update if status.best >= 0 else status.update,
        "training_seconds": round(status.seconds, 2),
        "updates_per_second": round(status.update / status.seconds, 1),
        "curve": curve,
        "validation": on_validation(model, run) if curve and run.validation_norms else None,
        "test": on_test(model, run),
        "test_by_class_mean": by_class_mean(model, run),
        **({"unmirrored": on_test(model.network, run)} if isinstance(model, Mirrored) else {}),
        **by_metrics(model, run),
        **made[-1],
        **({"made_in_parts": made} if len(made) > 1 else {}),
        **({} if here.items() <= made[-1].items() else {"measured_by": {**here, "date": today()}}),
    }
    path = path_of(run, results)
    write_record(path, record)
    written: dict[str, Any] = read_json(path)
    return written


def made_by(folder: Path, updates: int, side_by_side: int) -> list[dict[str, Any]]:
    """Where, when and by which code the weights are made, part by part; kept with them, since they outlive their json."""
    path = folder / MADE
    parts: list[dict[str, Any]] = read_json(path, list[dict[str, Any]]) if path.exists() else []
    done = status_of(folder).update >= updates
    here = {
        "side_by_side": side_by_side,
        "commit": commit(),
        "date": today(),
        "hardware": hardware(),
        "torch": torch.__version__,
        "rankshot": __version__,
    }
    if not parts or (not done and parts[-1] != here):
        parts.append(here)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(parts, indent=1) + "\n")
    return parts


def today() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")


def on_validation(model: nn.Module, run: Run) -> dict[str, Any]:
    """norm -> task -> mean and interval: what norm and recipe are chosen by."""
    images = load(run.config, "val")
    tasks = validation_tasks(run.config, images)
    return _by_norm(model, images, tasks, VALIDATION, run.validation_norms)


def on_test(model: nn.Module, run: Run) -> dict[str, Any] | None:
    """norm -> task -> mean and interval."""
    if run.questions is None:
        return None
    images = load(run.config, "test")
    return _by_norm(model, images, run.questions.of(images), run.questions)


def by_class_mean(model: nn.Module, run: Run) -> dict[str, Any] | None:
    """task -> mean and interval, by running statistics: classified by the mean of a class instead of the paper's rule."""
    if run.questions is None or isinstance(model, Answerer | HasRule):  # it has a rule of its own
        return None
    images, asked = load(run.config, "test"), run.questions
    tasks = [task for task in asked.of(images) if isinstance(task, Classification)]
    return summary(evaluate(model, images, tasks, asked.episodes, asked.seed, rule="prototype"))


def by_metrics(model: nn.Module, run: Run) -> dict[str, Any]:
    """metric -> mean and interval of retrieval among the most classes, and on how many episodes; if a run asks for it.

    These are fewer than `questions` tell, and the same of every run; records before this was told have as many.
    """
    if run.questions is None or run.questions.retrieval_metrics is None:
        return {}
    images, asked = load(run.config, "test"), run.questions
    task = tasks_for(images, [max(asked.ways)], asked.shots)[-1]
    assert isinstance(task, Retrieval)
    found = by_each_metric(model, images, task, run.questions.retrieval_metrics, asked.seed)
    return {"retrieval_metrics": found, "retrieval_metrics_episodes": EPISODES}


def _by_norm(
    model: nn.Module, images: Any, tasks: Sequence[Task], asked: Questions, norms: Sequence[str] = NORMS
) -> dict[str, Any]:
    pixels = pixels_for(model, images)
    tasks = [task for task in tasks if can_answer(model, task)]
    norms = [norm for norm in norms if asked.by(norm)]
    if isinstance(model, Answerer):  # it normalises in its own way: the norms differ in their episodes alone
        numbers = {asked.by(norm) for norm in norms}
        found = {number: summary(evaluate(model, images, tasks, number, asked.seed, pixels=pixels)) for number in numbers}
        return {norm: found[asked.by(norm)] for norm in norms}
    return {norm: summary(evaluate(model, images, tasks, asked.by(norm), asked.seed, norm, pixels)) for norm in norms}


def path_of(run: Run, results: Path) -> Path:
    return results / f"{run.name}.json"


def result_of(run: Run, results: Path) -> dict[str, Any] | None:
    """What is recorded of a run, if it is. A record of other settings is an error: nothing is overwritten.

    One that was asked fewer episodes is not done yet: it is to be asked again, and is replaced then. One that was asked
    more tasks is done. So is one that was stopped early, if it says so and what it learned is what a run of full length has
    learned by then; see `_is_cut`.
    """
    path = path_of(run, results)
    if not path.exists():
        return None
    record: dict[str, Any] = read_json(path)
    asked = None if run.questions is None else run.questions.to_json()
    recorded = {**settings_in(record, path), "questions": record.get("questions")}
    expected = {**settings_of(run.config), "questions": asked}
    changed = [name for name in {**expected, **recorded} if recorded.get(name) != expected.get(name)]
    if "updates" in changed and _is_cut(record, recorded, expected):
        changed.remove("updates")
    before = record.get("questions")
    if "questions" in changed and isinstance(before, dict) and asked is not None:
        if _answers(before, asked):
            changed.remove("questions")
        elif changed == ["questions"] and _answers(before, asked, WHICH_EPISODES) and _has_fewer(before, asked):
            return None
    if changed:
        raise ValueError(
            f"{path} was made with other settings ({', '.join(changed)}): to run it anew, move away this file and the "
            "folder of its run"
        )
    return record


def _answers(before: dict[str, Any], asked: dict[str, Any], but: Sequence[str] = ()) -> bool:
    """Whether questions that were asked are those of today; more tasks may have been asked than are asked today."""
    names = {**before, **asked}.keys() - {"tasks", *but}
    tasks = before.get("tasks")
    has_tasks = tasks is None or (isinstance(tasks, list) and "tasks" in asked and {*asked["tasks"]} <= {*map(str, tasks)})
    return has_tasks and all(before.get(name) == asked.get(name) for name in names)


def _has_fewer(before: dict[str, Any], asked: dict[str, Any]) -> bool:
    episodes = before.get("episodes")
    return type(episodes) is int and 0 < episodes < asked["episodes"]


def _is_cut(record: dict[str, Any], recorded: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether it was stopped early: `cut_from` is the number of updates that it was to have.

    Where the learning rate falls along a cosine, a shorter run is another one from its first update.
    """
    is_shorter = bool(recorded["updates"] < expected["updates"])
    return is_shorter and record.get("cut_from") == expected["updates"] and expected["schedule"] != "cosine"


def run_in(path: Path) -> Run:
    """The run that a json tells about, to be run again."""
    record = read_json(path)
    config = config_in(record, path)
    name = PurePosixPath(str(record.get("name", path.stem)))
    if name.is_absolute() or ".." in name.parts:
        raise ValueError(f"{path} is no record of a run: its name {str(name)!r} leads elsewhere")
    asked: dict[str, Any] | None = record.get("questions")
    least, most = Questions().to_json(), {field.name for field in fields(Questions)}
    if asked is not None and (not isinstance(asked, dict) or not least.keys() <= asked.keys() <= most):
        raise ValueError(f"{path} is no record of a run: 'questions' should hold {least}")
    if asked is not None and not all(_whole_numbers(asked[name]) for name in ("ways", "shots")):
        raise ValueError(f"{path} is no record of a run: 'ways' and 'shots' of its questions must be lists of numbers")
    for part in ("retrieval_metrics", "tasks"):
        names = (asked or {}).get(part, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{path} is no record of a run: '{part}' of its questions must be a list of names")
    as_tuples: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in (asked or {}).items()
    }
    return Run(
        str(name),
        config,
        None if asked is None else Questions(**as_tuples),
        tuple(norm for norm in NORMS if norm in (record.get("validation") or ())),
    )


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int for value in values)


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """By their flat names, as json has them, without those that say where and how a run happened."""
    content: dict[str, Any] = json.loads(json.dumps(config.flat()))
    return {name: value for name, value in content.items() if name not in PLACE}


def settings_in(record: dict[str, Any], path: Path) -> dict[str, Any]:
    """Those of a record, of this version's or an earlier one's; also such as no run has any more."""
    config = record["config"] if isinstance(record.get("config"), dict) else {}
    gone = {name: config[name] for name in GONE if name in config}
    kept = {name: value for name, value in config.items() if name not in GONE}
    return {**settings_of(config_in({**record, "config": kept} if gone else record, path)), **gone}


def config_in(record: dict[str, Any], path: Path) -> TrainConfig:
    """That of a record; a setting that was not there yet counts as its default."""
    if not isinstance(record.get("config"), dict):
        raise ValueError(f"{path} is no record of a run: there is no object 'config' in it")
    return TrainConfig.from_settings(record["config"], path)
