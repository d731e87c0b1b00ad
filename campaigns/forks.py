"""Children of a process that has imported everything: a fork takes milliseconds, where importing torch takes seconds."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PAGE = resource.getpagesize()
BEFORE = 60.0  # seconds
PATIENCE = 5  # times as long may a child take that has no processor
SEAT_BELT = 2**35  # bytes of address space: parents watch the memory that is really used


@dataclass
class Ended:
    """How a child ended: by itself, or ended by its parent since it was a `hang` or took too much `memory`."""

    seconds: float
    peak: int  # bytes of memory, its own children's too
    code: int  # as it left, or minus the number of the signal
    stopped: str = ""


@dataclass
class Child:
    """One that runs.

    seconds   that it may take
    memory    bytes that it may have
    marker    a file that it makes when its time begins; before, it has a minute
    """

    act: Callable[[], None]
    seconds: float
    memory: int
    marker: Path | None = None
    pid: int = 0
    began: float = field(default_factory=time.monotonic)
    stopped: str = ""

    def start(self) -> Child:
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            _live(self.act)
        self.began = time.monotonic()
        return self

    def ended(self) -> Ended | None:
        """None: it still runs, and may."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.began
        if pid:
            self._end_others()
            return Ended(seconds, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), self.stopped)
        if self.marker is not None:
            if self.marker.exists():
                self.began, self.marker, seconds = time.monotonic(), None, 0.0
            elif seconds < BEFORE:
                return None
        is_slow = seconds > self.seconds and seconds - self._starved() > self.seconds
        if not self.stopped and (is_slow or self._resident() > self.memory):
            self.stopped = "hang" if is_slow else "memory"
            os.kill(self.pid, signal.SIGUSR1)  # where it is, if it tells
            time.sleep(0.05)
            self.kill()
        return None

    def wait(self) -> Ended:
        while (result := self.ended()) is None:
            time.sleep(0.003)
        return result

    def kill(self) -> None:
        """It, and whatever it has started."""
        for kill in (os.killpg, os.kill):  # it may have no group of its own yet
            with contextlib.suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
                return

    def _end_others(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _starved(self) -> float:
        """Seconds in which it could have gone on and had no processor: others' load is not its fault, up to a point."""
        waited = 0.0
        for path in Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                waited = max(waited, int(path.read_text().split()[1]) / 1e9)
        return min(waited, PATIENCE * self.seconds)

    def _resident(self) -> int:
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            return 0


def _live(act: Callable[[], None]) -> None:
    """The child's whole life."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _fasten()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        act()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # the campaign's own fault: whatever is tried is caught where it is tried
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def conduct(main: Callable[[], int]) -> None:
    """A campaign from its beginning to its end: what was frozen for its children is not taken apart."""
    try:
        code = main()
    except SystemExit as error:  # asked to stop
        code = error.code if isinstance(error.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _fasten() -> None:
    """The seat belt; a child's child has its parent's."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
    if resource.getrlimit(resource.RLIMIT_AS)[1] == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (now + SEAT_BELT,) * 2)


def ready_to_fork() -> None:
    """Everything imported, one thread, and nothing computed yet: torch's threads do not outlive a fork."""
    import importlib

    import torch
    from PIL import Image

    sys.dont_write_bytecode = True
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    from rankshot.cli.main import COMMANDS

    for name in COMMANDS:
        importlib.import_module(f"rankshot.cli.{name}")
    for name in ("rankshot.gallery.classifier", "rankshot.losses", "rankshot.ranking", "sqlite3", "torch._dynamo"):
        importlib.import_module(name)
    Image.init()
    gc.collect()
    gc.freeze()
