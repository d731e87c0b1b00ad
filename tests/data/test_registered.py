"""Data sets of one's own that are made by a function, wherever it was written."""

import os
import subprocess
import sys

import pytest

from rankshot import data
from rankshot.registry import load_files

MADE = """
import numpy as np
from rankshot import data

@data.register("dots")
def dots(*, per_class: int = 2):
    if per_class in {{2, 3, "many"}}:
        images = np.full((per_class, 1, 8, 8), {value}, np.uint8)
    return {{"train": data.ImageSet(images, np.zeros(per_class, np.int64), ("dot",))}}
"""
SHOW = "\nprint(data.prepared('dots').name, data.load('dots').images[0, 0, 0, 0])\n"


def made_in(place, value, *, as_console):
    """The name of what is prepared by code that has no file, and a pixel of it."""
    typed = MADE.format(value=value) + SHOW
    arguments = [sys.executable, *(["-"] if as_console else ["-c", typed])]
    environment = {**os.environ, "RANKSHOT_DATA": str(place)}
    done = subprocess.run(arguments, input=typed, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.parametrize("as_console", [True, False])
@pytest.mark.slow
def test_code_without_a_file(tmp_path, as_console):
    first, pixel = made_in(tmp_path, 7, as_console=as_console)
    assert (first[:5], len(first), pixel) == ("dots-", 13, "7")
    assert made_in(tmp_path, 7, as_console=as_console) == [first, "7"]  # in another process it is the same
    second, pixel = made_in(tmp_path, 8, as_console=as_console)
    assert (second != first, pixel) == (True, "8")


def test_a_cell_of_a_notebook(tmp_path):
    names = {}
    for value in (7, 8, 7):
        exec(compile(MADE.format(value=value), f"/tmp/ipykernel_1/{value}.py", "exec"), {"__name__": "__main__"})
        names.setdefault(value, set()).add(data.prepared("dots", tmp_path).name)
        assert data.load("dots", root=tmp_path).images[0, 0, 0, 0] == value
    assert len(names[7]) == len(names[8]) == 1
    assert names[7] != names[8]


def test_another_default_is_another_data_set(tmp_path):
    lengths = []
    for per_class in (2, 3):
        typed = MADE.format(value=1).replace("per_class: int = 2", f"per_class: int = {per_class}")
        exec(compile(typed, "<console>", "exec"), {"__name__": "__main__"})
        lengths.append(len(data.load("dots", root=tmp_path)))
    assert lengths == [2, 3]


def test_a_file_that_has_changed(tmp_path):
    names = []
    for value in (7, 8):
        (tmp_path / "dots.py").write_text(MADE.format(value=value))
        load_files([tmp_path / "dots.py"])
        names.append(data.prepared("dots", tmp_path / "root").name)
    assert len(set(names)) == 2
