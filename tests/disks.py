"""A disk with little room, where one can be had."""

import os
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def small_disk(place, size):
    """Mounted at `place`; yields what gives it more room."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield lambda more: subprocess.run(["mount", "-o", f"remount,size={more}", place], check=True)
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def raised_by(act):
    """The error of the system that comes of something, if one does."""
    try:
        act()
    except OSError as error:
        return error
    return None
