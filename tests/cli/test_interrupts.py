"""Ctrl-C at any moment: one word, and never a traceback."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from processes import FOREGROUND

START = """
import sys
import rankshot.cli.main as cli
assert not {"torch", "tyro", "typing"} & sys.modules.keys(), "heavy imports come before the handler"
begin = cli.Interrupts
cli.Interrupts = lambda: (begin(), print("go", flush=True))[0]
sys.exit(cli.main())
"""


def started(*arguments, code=START):
    command = [*FOREGROUND, sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "go\n", process.communicate()
    return process


def check(process):
    """Stopped with a word, or done before."""
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert process.returncode in (0, 130), (out, err)
    if process.returncode == 130:
        assert err.splitlines()[-1:] == ["stopped"] or "to go on: rankshot train" in out
    return process.returncode


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (6, 7))])
def test_while_it_imports_and_while_it_runs(tmp_path, seed):
    """Training that would take hours, so that it is stopped in the middle of something."""
    moments = random.Random(seed)
    command = ["train", "--updates", "1000000", "--device", "cpu", "--filters", "8", "--run"]
    some = [(moments.uniform(0, 4), started(*command, tmp_path / str(moments.random()))) for _ in range(4)]
    began = time.perf_counter()
    for moment, process in sorted(some, key=lambda each: each[0]):
        time.sleep(max(0.0, began + moment - time.perf_counter()))
        process.send_signal(signal.SIGINT)
    assert [check(process) for _, process in some] == [130] * 4


@pytest.mark.slow
def test_twice_while_it_trains(tmp_path, rankshot):
    """The first asks for a checkpoint, the second does not wait for it."""
    process = started("train", "--updates", "1000000", "--device", "cpu", "--filters", "64", "--run", tmp_path / "run")
    while "about" not in process.stdout.readline():
        assert process.poll() is None
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.001)
    assert check(process) == 130
    assert (tmp_path / "run" / "state.safetensors").is_file()


def test_until_python_itself_has_ended():
    moments = random.Random(6)
    codes = []
    for _ in range(12):
        process = started("--version")
        time.sleep(moments.uniform(0, 0.08))
        process.send_signal(signal.SIGINT)
        codes.append(check(process))
    assert 130 in codes


def test_by_a_caller_in_python():
    """Who calls `main` with arguments has Ctrl-C as before, also after it, until Python ends."""
    code = """
import os, signal, sys
from rankshot.cli.main import main
print("go", flush=True)
main(["--version"])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("heard")
import atexit
atexit.register(lambda: None)
"""
    process = started(code=code)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[-1], err) == (0, "heard", "")


@pytest.fixture
def handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_is_told_and_the_second_is_not(handler, monkeypatch):
    from rankshot.cli.interrupts import Interrupts

    class Ended(Exception):
        pass

    def end():
        raise Ended

    monkeypatch.setattr("rankshot.cli.interrupts.end_at_once", end)
    interrupts = Interrupts()
    with pytest.raises(Ended):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interrupts:
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Ended):
        os.kill(os.getpid(), signal.SIGINT)
    interrupts.end()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_it_is_switched_off_it_stays_so(handler):
    from rankshot.cli.interrupts import Interrupts

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts = Interrupts()
    interrupts.end()
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
