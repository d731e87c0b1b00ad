"""How things are measured here: side by side, interleaved, medians; peak memory in a process of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

TURN = 0.05  # seconds; a contender that is faster runs several times in a turn


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int, turn: float = TURN) -> dict[str, float]:
    """Median seconds a run of each. The contenders take turns, so that a noisy machine is noisy for all."""
    for run in contenders.values():
        run()  # warm
    repeats = {name: max(1, round(turn / _seconds(run, 1))) for name, run in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds[name].append(_seconds(run, repeats[name]))
    return {name: statistics.median(times) for name, times in seconds.items()}


def _seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def timed(act: Callable[[], object]) -> float:
    """Seconds of one call."""
    return _seconds(act, 1)


def in_a_process(module: str, *arguments: object) -> str:
    """Run a module of this folder by itself, and return what it printed last."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def peak_bytes(run: Callable[[], object]) -> int:
    """How far the resident memory of this process rises above where it stands now (Linux)."""
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    run()
    return max(0, resident("VmHWM") - before)


def resident(field: str, process: int | str = "self") -> int:
    """Bytes: VmRSS, now; VmHWM, at most so far."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/{process}/status")
