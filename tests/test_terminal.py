"""Counting for a log."""

import json
import os
import pty
import subprocess
import sys

import pytest

from rankshot.terminal import counting, json_line, printable, say, tallying

NASTY = "caf\u00e9 \x1b[31m\x07\x7f\x9b1m\r\n\t\u202egnp.exe\u2028\ufeff\udcff\ud800\U000e0041"


def test_what_no_terminal_is_sent():
    assert printable(NASTY) == (
        "café \\x1b[31m\\x07\\x7f\\x9b1m\\r\\n\\t\\u202egnp.exe\\u2028\\ufeff\\xff\\ud800\\U000e0041"
    )
    assert printable("猫 😀 C:\\x") == "猫 😀 C:\\x"
    assert printable(NASTY).encode().decode() == printable(NASTY)


def test_lines(capsys):
    say("a\nb", NASTY, 3)
    assert capsys.readouterr().out == f"a\\nb\n{printable(NASTY)}\n3\n"


def test_json_tells_exactly_what_there_is():
    for value in (NASTY, {NASTY: [NASTY, 1.5, None]}):
        for encoding in (None, "utf-8", "UTF8", "latin-1", "ascii"):
            line = json_line(value, encoding)
            assert json.loads(line) == value
            assert line.isprintable()
            assert ("é" in line) == (encoding in (None, "utf-8", "UTF8"))
            assert line.encode(encoding or "utf-8")


def test_plain_lines(capsys):
    with counting("mine", lines=4) as told:
        for done in range(1, 1001):
            told(done, 1000)
    assert capsys.readouterr().out.splitlines() == [f"mine  {done}/1000" for done in (250, 500, 750, 1000)]


def test_lines_for_who_listens(capsys, monkeypatch):
    monkeypatch.setattr("rankshot.terminal.wants_bar", lambda: True)
    heard = []
    with counting("mine", lines=2, tell=heard.append) as told:
        for done in range(1, 5):
            told(done, 4)
    assert heard == ["mine  2/4", "mine  4/4"]
    assert capsys.readouterr() == ("", "")


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
