"""Counting for a log."""

import os
import pty
import subprocess
import sys

import pytest

from rankshot.terminal import counting, tallying


def test_plain_lines(capsys):
    with counting("mine", lines=4) as told:
        for done in range(1, 1001):
            told(done, 1000)
    assert capsys.readouterr().out.splitlines() == [f"mine  {done}/1000" for done in (250, 500, 750, 1000)]


def test_a_log_hears_nothing_of_a_tally(capsys):
    with tallying("images") as told:
        told(5)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("beside", [True, False])
def test_a_live_tally_on_standard_error(beside):
    """A real terminal on standard error alone: standard output stays clean, for whoever reads it."""
    code = f"""
import sys
from rankshot.terminal import tallying
with tallying("images", beside_output={beside}) as told:
    for done in range(1, 2001):
        told(done)
    print("a row")
    print("a failure", file=sys.stderr)
"""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    for name in ("CI", "NO_COLOR"):
        environment.pop(name, None)
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment, text=True)
    os.close(theirs)
    told = b""
    try:
        while some := os.read(ours, 4096):
            told += some
    except OSError:  # the other end is closed
        pass
    out, _ = process.communicate()
    assert process.returncode == 0
    assert out == "a row\n"
    assert b"a failure" in told
    assert (b"2,000 images" in told) == beside
