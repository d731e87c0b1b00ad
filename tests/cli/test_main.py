"""The door of the command line."""

import logging
import subprocess
import sys
import warnings

import pytest
import torch

import rankshot as package
from rankshot.cli import main as cli
from rankshot.cli.main import COMMANDS, main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rankshot {package.__version__}\n"


def test_the_help_names_every_command(capsys):
    assert main(["-h"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown and what in shown for name, what in COMMANDS.items())


def test_unknown_command(capsys):
    assert main(["trian"]) == 1
    there = "'data', 'train', 'evaluate', 'classify', 'gallery', 'search', 'adapt', 'serve', 'export', 'reproduce'"
    assert capsys.readouterr().err == f"rankshot: unknown command 'trian': there is {there}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(capsys, name):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"usage: rankshot {name}" in shown
    assert {
        "data": "prepare",
        "reproduce": "--jobs INT",
        "classify": "--support PATH",
        "gallery": "rescue",
        "search": "--sheet",
        "adapt": "--vectors-out PATH",
        "serve": "--workspace PATH",
        "export": "NAME.onnx",
    }.get(name, "--seed INT") in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_does_not_exist(capsys, name):
    needed = {"export": ["run", "to.onnx"], "adapt": ["vectors.npz", "--out", "map"]}.get(name, ["run"])
    with pytest.raises(SystemExit) as ended:
        main([name, *needed, "--sede", "3"])
    assert ended.value.code == 2
    assert "--sede" in capsys.readouterr().err


def test_as_a_process(rankshot):
    done = subprocess.run(rankshot("evaluate", "run", "--sede", "3"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--sede" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (ValueError("a value"), "rankshot: a value\n", 1),
        (OSError(28, "No space left on device", "file"), "rankshot: file: No space left on device\n", 1),
        (FileExistsError("run exists"), "rankshot: run exists\n", 1),
        (MemoryError(), f"rankshot: {cli.MEMORY}\n", 1),
        (MemoryError("Unable to allocate 9 GiB"), "rankshot: Unable to allocate 9 GiB\n", 1),
        (ModuleNotFoundError("no tyro", name="tyro"), f"rankshot: no tyro. {cli.EXTRA}\n", 1),
        (ModuleNotFoundError("no fonts", name="PIL.ImageFont"), f"rankshot: no fonts. {cli.EXTRA}\n", 1),
        (ModuleNotFoundError("no foo", name="foo"), "rankshot: no foo\n", 1),
        (ImportError("pip install 'rankshot[wandb]'"), "rankshot: pip install 'rankshot[wandb]'\n", 1),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"), f"rankshot: {cli.MEMORY}\n", 1),
        (KeyboardInterrupt(), "stopped\n", 130),
    ],
    ids=repr,
)
def test_errors_of_use_are_one_line(monkeypatch, capsys, error, message, code):
    def fail(name):
        raise error

    monkeypatch.setattr("importlib.import_module", fail)
    assert main(["train"]) == code
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    "take",
    [
        lambda: torch.empty(2**45),
        lambda: torch.empty(2**62),
        lambda: torch.nn.Linear(2**25, 2**25),
        lambda: bytearray(2**62),
    ],
)
def test_more_memory_than_there_is(monkeypatch, capsys, take):
    monkeypatch.setattr("importlib.import_module", lambda name: take())
    assert main(["train"]) == 1
    assert capsys.readouterr().err == f"rankshot: {cli.MEMORY}\n"


@pytest.mark.parametrize(
    "told", ["CUDA error: out of memory", "std::bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED", "can't start new thread"]
)
def test_how_else_it_is_told(monkeypatch, capsys, told):
    def fail(name):
        raise RuntimeError(told)

    monkeypatch.setattr("importlib.import_module", fail)
    assert main(["train"]) == 1
    assert capsys.readouterr().err == f"rankshot: {cli.MEMORY}\n"


def test_advice_has_lines_of_its_own(monkeypatch, capsys):
    def fail(name):
        error = ValueError("x\ny\x1b[31m" + "z" * 10_000)
        error.add_note("do this\nthen that")
        raise error

    monkeypatch.setattr("importlib.import_module", fail)
    assert main(["train"]) == 1
    first, *more = capsys.readouterr().err.splitlines()
    assert first.startswith("rankshot: x\\ny\\x1b[31mzzz")
    assert len(first) < 2100
    assert more == ["do this", "then that"]


def test_logs_and_warnings_are_lines_too(monkeypatch, capsys):
    def tell(name):
        logging.getLogger("rankshot.x").info("read %s", "a\x1b[31m\nb")
        warnings.warn("old \x1b[31m", stacklevel=1)
        raise ValueError("so")

    monkeypatch.setattr("importlib.import_module", tell)
    handler = logging.StreamHandler()  # on standard error as it is now
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(warnings, "showwarning", lambda *told: sys.stderr.write(warnings.formatwarning(*told)))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["train"]) == 1
    assert capsys.readouterr().err == "read a\\x1b[31m\\nb\nrankshot: old \\x1b[31m\nrankshot: so\n"


def test_no_arguments_at_all(capsys):
    assert main([]) == 0
    assert "usage: rankshot COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError])
def test_errors_of_ours_are_not_hidden(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr("importlib.import_module", fail)
    with pytest.raises(error):
        main(["train"])


def test_a_traceback_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("RANKSHOT_TRACEBACK", "1")
    with pytest.raises(ValueError, match="unknown method"):
        main(["train", "--method", "none"])
