"""Python in a process of its own, from the root of the repository."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


# Put before a command: it hears Ctrl-C, as from a terminal, though a shell's background job does not. No `preexec_fn`: that
# forks this process with whatever threads it has, and gRPC's have left such children without their pipes.
FOREGROUND = ["env", "--default-signal=INT"]


def python(*arguments):
    """As `python ARGUMENTS` in a shell; what it printed and its exit code."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
