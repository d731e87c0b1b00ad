"""`rankshot reproduce photographs`: what there is to do, in order; what has its json is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rankshot.data import prepared
from rankshot.terminal import counting, say

from . import fine_tuning, resnet12, resnet12_heads, resnet12_model
from .contenders import METHODS

HEADED = ("base", "on-distil", "on-distil-images")  # networks that heads are tried on


@dataclass(frozen=True)
class Stage:
    """Runs that belong together.

    done     how many of its json files are there, and how many there will be
    perform  makes the others
    wants    photographs that nobody has given
    """

    name: str
    done: Callable[[], tuple[int, int]]
    perform: Callable[[], None]
    wants: str | None = None

    @property
    def is_whole(self) -> bool:
        there, expected = self.done()
        return there >= expected

    def __str__(self) -> str:
        there, expected = self.done()
        return f"{self.name}: {there} of {expected} done"


def perform_all(chosen: Sequence[Stage], seconds: float | None) -> bool:
    """One after another, the next one not after so many seconds; whether everything is there then.

    A stage that cannot be done, for want of photographs or of weights, is told and left out.
    """
    begin = time.time()
    for stage in chosen:
        if seconds is not None and time.time() - begin >= seconds:
            break
        if stage.wants is not None and not stage.is_whole:
            say(f"{stage.name}: left out, for want of --{stage.wants} FOLDER")
        elif not stage.is_whole:
            try:
                stage.perform()
            except FileNotFoundError as error:
                say(f"{stage.name}: {error}")
        if stage.wants is None or stage.is_whole:
            say(str(stage))
    return all(stage.is_whole for stage in chosen)


def stages(results: Path, runs: Path, folders: Mapping[str, Path | None], jobs: int) -> list[Stage]:
    """All of them: mini-ImageNet first, whose networks heads learn on."""
    found = []
    for name in resnet12.TRIALS:
        paths = [resnet12.record_of(name, results)]
        act = partial(resnet12.perform, name, runs, results)
        found.append(Stage(f"resnet12/{name}", partial(_there, paths), partial(_on_mini_imagenet, act)))
    for name in HEADED:
        act = partial(resnet12_heads.perform, name, runs, results)
        there = partial(_there_of_heads, results, name)
        found.append(Stage(f"resnet12-heads/{name}", there, partial(_on_mini_imagenet, act)))
    act = partial(resnet12_model.perform, HEADED, runs, results)
    paths = [resnet12_model.record_of(results)]
    found.append(Stage(resnet12_model.NAME, partial(_there, paths), partial(_on_mini_imagenet, act)))
    for task, folder in folders.items():
        for part in fine_tuning.PARTS:
            act = partial(fine_tuning.perform, task, folder, part, results, jobs=jobs)  # type: ignore[arg-type]
            found.append(Stage(f"{task}/{part}", partial(_there_of, results, task, part), act, None if folder else task))
    return found


def _on_mini_imagenet(act: Callable[[], None]) -> None:
    with counting(resnet12.DATA) as progress:
        prepared(resnet12.DATA, progress=progress)
    act()


def _there(paths: Sequence[Path]) -> tuple[int, int]:
    return sum(path.exists() for path in paths), len(paths)


def _there_of_heads(results: Path, network: str) -> tuple[int, int]:
    """Trials, and a test of each kind of head and loss."""
    trials = list(resnet12_heads.trials())
    chosen = resnet12_heads.chosen(network, results)
    tests, _ = _there([resnet12_heads.record_of(network, trial, results, "test") for trial in chosen])
    tried, _ = _there([resnet12_heads.record_of(network, trial, results) for trial in trials])
    return tried + tests, len(trials) + len({(trial.head, trial.loss) for trial in trials})


def _there_of(results: Path, task: str, part: str) -> tuple[int, int]:
    """Trials and tests; which tests there will be, the trials decide."""
    expected = len(METHODS) * (2 * len(fine_tuning.RATES[part]) + len(fine_tuning.SEEDS))
    folder = results / fine_tuning.FOLDER / task / part
    return sum(len(list((folder / kind).glob("*.json"))) for kind in ("trials", "test")), expected
