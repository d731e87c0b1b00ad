"""A workload in a process of its own, and the check of what it leaves in another one."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .arena import Arena
from .case import copy
from .forks import Child, Ended
from .workloads import Disturbed, Workload

GOODS = ("pictures", "run", "cache", "classifier")
PLACE = "place"
SECONDS, MEMORY = 60.0, 2**33


@dataclass
class Trial:
    """A workload in an arena, disturbed once or several times.

    place          where it works; good folders lie beside
    acknowledged   the lines that it has told so far
    """

    workload: Workload
    arena: Arena
    folder: Path  # that `place` is in
    acknowledged: list[str] = field(default_factory=list)

    @property
    def place(self) -> Path:
        return self.folder / PLACE

    @property
    def acknowledged_file(self) -> Path:
        return self.arena.notes / "told"

    def settle(self, goods: Path) -> Trial:
        """Good folders, and nothing else."""
        self.folder.mkdir(exist_ok=True)
        for name in GOODS:
            copy(goods / name, self.folder / name)
        self.workload.ready(self.place)
        return self

    def fresh(self) -> None:
        """As before the work began."""
        self.acknowledged.clear()
        for entry in self.folder.iterdir():
            if entry.name not in GOODS:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        self.workload.ready(self.place)

    def start(self, first: Callable[[], None] | None = None, last: Callable[[], object] | None = None) -> Child:
        """The workload, from now on. `first` and `last` are done before and after it, in its process."""
        self.acknowledged_file.write_text("")
        (self.arena.notes / "ended").unlink(missing_ok=True)

        def act() -> None:
            self._enter("work")
            file = os.open(self.acknowledged_file, os.O_WRONLY | os.O_APPEND)

            def tell(line: str) -> None:
                os.write(file, line.encode() + b"\n")

            content: dict[str, Any] = {}
            tell("starts")
            began = time.monotonic()
            if first is not None:
                first()
            try:
                self.workload.act(self.place, self.acknowledged, tell)
                content["done"] = True
            except Disturbed as error:
                content["error"] = str(error)
            except BaseException:  # whatever it is: nobody should see it
                content["traceback"] = traceback.format_exc()
            content["seconds"] = time.monotonic() - began
            if last is not None:
                content["last"] = last()
            (self.arena.notes / "ended").write_text(json.dumps(content))

        return Child(act, SECONDS, MEMORY).start()

    def wait_until_it_starts(self) -> None:
        ends = time.monotonic() + SECONDS
        while not self.acknowledged_file.read_text() and time.monotonic() < ends:
            time.sleep(0.001)

    def learn(self) -> None:
        """What the process had told when it ended."""
        self.acknowledged += [line for line in self.acknowledged_file.read_text().splitlines() if line != "starts"]

    def outcome(self, ended: Ended) -> dict[str, Any]:
        """done, error or traceback; or how the process ended instead."""
        path = self.arena.notes / "ended"
        if not path.exists():
            return {"traceback": f"the process ended with {ended.stopped or ended.code}: {self._printed('work')}"}
        content: dict[str, Any] = json.loads(path.read_text())
        return content

    def problems(self, reference: Path) -> list[str]:
        """What is wrong now, as a process finds that has nothing to do with the one before."""
        path = self.arena.notes / "problems"
        path.unlink(missing_ok=True)

        def act() -> None:
            self._enter("check")
            try:
                problems = self.workload.check(self.place, self.acknowledged, reference)
            except Disturbed as error:
                problems = [f"not usable: {error}"]
            except BaseException as error:  # what is left makes the next process fail
                problems = [f"not usable: {type(error).__name__}: {error}\n{traceback.format_exc()[-1500:]}"]
            path.write_text(json.dumps(problems))

        ended = Child(act, SECONDS, MEMORY).start().wait()
        if not path.exists():
            return [f"not usable: the next process ended with {ended.stopped or ended.code}: {self._printed('check')}"]
        problems: list[str] = json.loads(path.read_text())
        return problems

    def _enter(self, name: str) -> None:
        os.environ.update({**self.arena.environment(), "RANKSHOT_DATA": str(self.folder / "cache")})
        tempfile.tempdir = None
        (self.arena.work / "tmp").mkdir(exist_ok=True)
        os.chdir(self.folder)
        file = os.open(self.arena.notes / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]

    def _printed(self, name: str) -> str:
        path = self.arena.notes / name
        return path.read_text(errors="replace")[-1000:] if path.exists() else ""
