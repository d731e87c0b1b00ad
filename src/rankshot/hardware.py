"""What this computes on, in words, for records."""

from __future__ import annotations

import platform
from pathlib import Path

import torch


def hardware() -> str:
    """The GPU's name, or the processor's."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    told = Path("/proc/cpuinfo")
    for line in told.read_text().splitlines() if told.exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
