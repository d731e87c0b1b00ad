"""Memory that is freed, kept: in processes of their own, since it is for good."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankshot.training import keep_memory

ASKED = f"""
import resource, runpy, sys
told = sys.argv[1] == "told" and runpy.run_path({str(Path(keep_memory.__file__))!r})["keep_freed_memory"]()
bytes(bytearray(2**26))
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    bytes(bytearray(2**26))
print(told, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def asked(way, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", ASKED, way]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean | environment)
    told, faults = done.stdout.split()
    return told == "True", int(faults)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be told")
def test_it_is_kept():
    assert asked("untold")[1] > 1000
    told, faults = asked("told")
    assert told
    assert faults < 100
    assert not asked("told", MALLOC_ARENA_MAX="2")[0]  # somebody has chosen otherwise


@pytest.mark.parametrize("missing", [AttributeError, OSError, TypeError])
def test_another_c_library(monkeypatch, missing):
    def none(_):
        raise missing

    monkeypatch.setattr(keep_memory.ctypes, "CDLL", none)
    assert not keep_memory.keep_freed_memory()
