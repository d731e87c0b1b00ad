"""What computes, and by which code, in words, for records."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

import numpy
import torch

DEVICES = ("auto", "cpu", "cuda")


def hardware() -> str:
    """The GPU's name, or the processor's."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text(errors="replace").splitlines() if cpuinfo.exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def device_for(asked: str) -> torch.device:
    """Where to compute: "cpu", "cuda", or "auto", which is a GPU where there is one."""
    if asked not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(map(repr, DEVICES))}, got {asked!r}")
    has_gpu = torch.cuda.is_available()
    if asked == "cuda" and not has_gpu:
        raise ValueError("device is 'cuda', but torch finds no CUDA device here: use 'cpu' or 'auto'")
    return torch.device("cuda" if has_gpu and asked != "cpu" else "cpu")


def commit() -> str | None:
    """Of the source that runs, where it lies in its repository; where it comes without history, COMMIT may tell it."""
    if from_environment := os.environ.get("COMMIT"):
        return from_environment
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        asked = ["git", "-C", str(here), *arguments]
        try:
            return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        except FileNotFoundError:
            return ""

    if not git("ls-files", "hardware.py"):  # in somebody else's repository perhaps, such as that of a virtual environment
        return None
    return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", ".") else "")


def circumstances(seed: int) -> dict[str, object]:
    """What a figure needs beside it to mean something."""
    return {
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "seed": seed,
        "processor": hardware(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }
