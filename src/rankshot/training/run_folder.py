"""A run is a folder. Whatever moment it is stopped at, what lies there can be read, and training can go on from it.

config.json         every setting, and what network it is
classes.json        the classes that it learns from
model.safetensors   the best network so far, by validation; `from_pretrained` reads it
class_means.safetensors   mean embeddings of classes that it learned from, written when it is done, where they help
start.safetensors   the weights before the first update, of a run that began with those of another
state.safetensors   where training stands: weights, Adam's averages, the update's number
metrics.jsonl       what was measured, one line a time
README.md           the model card
evaluation.json, report.html   written by `rankshot evaluate`, of its own test classes; evaluation-DATA-SPLIT.json and
                    report-DATA-SPLIT.html of others
made.json           written by `rankshot reproduce`: where and by which code the weights were made
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NotRequired, Required, TypedDict

from torch import Tensor

from rankshot.files import PARTIAL, Lines, locked, read_whole, write_whole
from rankshot.models.folder_files import CLASS_MEANS, CLASSES, CONFIG, ONE_SHOT, WEIGHTS
from rankshot.models.pretrained import described_in, fill, preprocess_in
from rankshot.models.shipped import full_name
from rankshot.preprocess import Preprocess
from rankshot.schema import Between, Length, checked, parsed, read_json
from rankshot.tensors import read_notes, read_tensors, write_tensors
from rankshot.version import __version__

from .card import Score, write_card
from .config import TrainConfig

log = logging.getLogger(__name__)

STATE, START, METRICS, MADE = "state.safetensors", "start.safetensors", "metrics.jsonl", "made.json"
MAY_COME_FIRST = (CLASSES, MADE)  # in a folder that becomes a run
# When a run is resumed:
MAY_CHANGE = ("updates", "minutes", "patience", "device", "root", "logger", "cuda_graph", "images_on")


Count = Annotated[int, Between(0, 2**53)]


class Line(TypedDict, total=False):
    """Of metrics.jsonl."""

    update: Required[Count]
    loss: float
    batch_map: float | None
    learning_rate: float
    seconds: float
    validation: dict[str, Score]
    best: bool


class Notes(TypedDict):
    """Of state.safetensors: a `RunStatus`."""

    update: Count
    best: float
    best_update: Count
    seconds: float
    total_seconds: NotRequired[float]
    threads: Count


@dataclass
class RunStatus:
    """How far a run has come."""

    update: int = 0
    best: float = -1.0  # validation mAP of the best network; -1 before the first validation
    best_update: int = 0
    seconds: float = 0.0  # spent in training, validation aside
    total_seconds: float = 0.0  # with validation
    threads: int = 0  # that torch computed with: another number gives other last bits

    @property
    def has_begun(self) -> bool:
        """Whether an update was made, or the weights that it begins with were measured."""
        return self.update > 0 or self.best >= 0


def forget_measured(folder: Path) -> None:
    """What "none of these" needs is of weights that change now."""
    for name in (CLASS_MEANS, ONE_SHOT):
        (folder / name).unlink(missing_ok=True)


def begin(
    folder: Path,
    config: TrainConfig,
    network: Mapping[str, Any],
    classes: Sequence[str] = (),
    preprocess: Preprocess | None = None,
    *,
    resume: bool,
) -> None:
    """Make the folder of a new run, or agree to go on with the one that is there. Nothing is ever overwritten.

    classes   those of training, kept so that nobody takes them for unseen ones later, when a folder of images has changed
    preprocess   how pictures are made ready for the network
    """
    if resume and is_run(folder):
        _check_settings(folder, config)
        if classes_of(folder) not in (None, list(classes)):
            raise ValueError(
                f"{config.data.name} has changed since {folder} was begun: its training classes are others now"
            )
        before = preprocess_in(folder)
        if None not in (before, preprocess) and before != preprocess:
            raise ValueError(f"{folder} was begun with pictures {before} and cannot go on with {preprocess}")
        _go_on(folder, config)
        return
    check_is_no_run(folder)
    if any(path.name not in MAY_COME_FIRST and not path.match(PARTIAL) for path in folder.iterdir()):
        raise FileExistsError(f"{folder} exists already and is not a run: name another folder with --out")
    write_whole(folder / CLASSES, json.dumps(list(classes), indent=0) + "\n")
    _write_config(folder, config, network, preprocess)  # last: it makes the folder a run


def check_is_no_run(folder: Path) -> None:
    """Of a run that is there, nothing is overwritten, nor taken for the weights of a new one."""
    if is_run(folder):
        raise FileExistsError(f"{folder} exists already: name another folder with --out, or go on with it by --resume")


def classes_of(folder: Path) -> list[str] | None:
    """What a run was trained on, where it tells."""
    if not (folder / CLASSES).exists():
        return None
    found: list[str] = read_json(folder / CLASSES, list[Annotated[str, Length(10_000)]])
    return found


def _changed(folder: Path, config: TrainConfig) -> dict[str, tuple[Any, Any]]:
    """The settings that differ from those that a run was begun with, by name: before, and now."""
    before = TrainConfig.from_json(folder / CONFIG)
    before = replace(before, network=replace(before.network, init=full_name(before.network.init)))
    began, goes_on = before.flat(), config.flat()
    both = {name: (began.get(name), goes_on.get(name)) for name in {**began, **goes_on}}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def _check_settings(folder: Path, config: TrainConfig) -> None:
    """A run goes on with the settings that it began with, but for a few."""
    for name, (began, goes_on) in _changed(folder, config).items():
        if name not in MAY_CHANGE:
            before = TrainConfig.from_json(folder / CONFIG)
            objects = {"method": before.method.is_object, "network": before.network.architecture.is_object}
            if objects.get(name):
                given = "loss= or method=" if name == "method" else "network="
                raise ValueError(f"{folder} was begun with {name} {began!r} as an object: give `train` the same by {given}")
            raise ValueError(
                f"{folder} was begun with {name} {began!r} and cannot go on with {goes_on!r}: start a new run from its "
                f"settings with --config {folder / CONFIG}"
            )
        if name == "updates" and config.optimiser.schedule == "cosine":
            log.warning("%s: the cosine schedule ends at update %d now; before this it went to %d", folder, goes_on, began)


def _go_on(folder: Path, config: TrainConfig) -> None:
    """Only from its checkpoint."""
    if not (folder / STATE).exists() and ((folder / WEIGHTS).exists() or read_metrics(folder)):
        raise FileNotFoundError(f"{folder} has lost its {STATE}: to start anew would erase what is there")
    done = status_of(folder).update
    if config.run.updates < done:
        raise ValueError(f"{folder} has come to update {done} already, which is past {config.run.updates}")
    if _changed(folder, config):
        _write_config(folder, config, described_in(folder), preprocess_in(folder))


def _write_config(folder: Path, config: TrainConfig, network: Mapping[str, Any], preprocess: Preprocess | None) -> None:
    how = {} if preprocess is None else {"preprocess": preprocess.to_json()}
    content = {"rankshot": __version__, "model": network, **how, **config.to_json()}
    write_whole(folder / CONFIG, json.dumps(content, indent=1) + "\n")


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file()


def has_checkpoint(folder: Path) -> bool:
    return is_run(folder) and (folder / STATE).is_file()


@contextmanager
def only_process_in(folder: Path) -> Iterator[None]:
    """The folder, made if need be; no two processes train in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder) as is_ours:
        if not is_ours:
            raise ValueError(f"another process is training in {folder}")
        yield


class RunFiles:
    """What a run writes while it goes on. Of several processes the first writes; for the others this does nothing."""

    def __init__(self, folder: Path, metrics: MetricsLog | None) -> None:
        """metrics is None in a process that writes nothing."""
        self.folder, self.metrics = folder, metrics

    def log(self, line: Mapping[str, Any]) -> None:
        if self.metrics is not None:
            self.metrics.write(line)

    def save_model(self, tensors: Mapping[str, Tensor], update: int, validation: Mapping[str, Any]) -> None:
        if self.metrics is not None:
            save_model(self.folder, tensors, update, validation)

    def save_state(self, tensors: Mapping[str, Tensor], status: RunStatus) -> None:
        if self.metrics is not None:
            self.metrics.wait_for_disk()  # first: a checkpoint counts on the lines before it
            save_state(self.folder, tensors, status)


def save_state(folder: Path, tensors: Mapping[str, Tensor], status: RunStatus) -> None:
    write_tensors(folder / STATE, tensors, {name: json.dumps(value) for name, value in asdict(status).items()})


def load_state(folder: Path, tensors: Mapping[str, Tensor]) -> RunStatus:
    """Fill the live tensors with those of the last checkpoint. Without one, nothing has happened yet."""
    for partial in folder.glob(PARTIAL):  # left by a process that was killed while writing
        if not partial.is_dir() or partial.is_symlink():
            partial.unlink()
    status = status_of(folder)
    if (folder / STATE).exists():
        fill(tensors, read_tensors(folder / STATE), folder / STATE)
    return status


def status_of(folder: Path) -> RunStatus:
    """How far a run has come by its last checkpoint."""
    if not (folder / STATE).exists():
        return RunStatus()
    notes = read_notes(folder / STATE)
    try:
        values = {name: parsed(notes[name], Any, name) for name in Notes.__annotations__ if name in notes}
        return RunStatus(**checked(values, Notes, "its notes"))
    except ValueError as error:
        raise ValueError(f"{folder / STATE} is no checkpoint of a run: {error}") from None


def save_model(folder: Path, tensors: Mapping[str, Tensor], update: int, validation: Mapping[str, Any]) -> None:
    """The network that the run is for, and a card that tells about it."""
    notes = {"format": "pt", "rankshot": __version__, "update": str(update), "validation": json.dumps(validation)}
    write_tensors(folder / WEIGHTS, tensors, notes)
    write_card(folder)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, without one that was cut short."""
    path = folder / METRICS
    lines = read_whole(path).splitlines(keepends=True) if path.exists() else []
    found = []
    for number, line in enumerate(lines, start=1):
        if number == len(lines) and not line.endswith(b"\n"):
            break  # of a process that was killed while writing
        try:
            found.append(parsed(line, Line, "it"))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: this is no line that training wrote: {error}") from None
    return found


@contextmanager
def metrics_after(folder: Path, update: int) -> Iterator[MetricsLog]:
    """metrics.jsonl, open to be continued after `update`: what a killed process wrote beyond its checkpoint goes."""
    kept = [line for line in read_metrics(folder) if line["update"] <= update]
    write_whole(folder / METRICS, "".join(json.dumps(line) + "\n" for line in kept))
    with closing(MetricsLog(folder / METRICS)) as metrics:
        yield metrics


class MetricsLog(Lines):
    """One line at a time, on the disk before the checkpoint that counts on it."""

    def write(self, line: Mapping[str, Any]) -> None:
        self.append(json.dumps(line).encode())
