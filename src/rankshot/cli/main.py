"""`rankshot`: finds the command, and turns errors of use into one line."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Sequence

import torch

from rankshot import __version__

COMMANDS = {
    "data": "prepare, check and look at data sets, known ones and your own",
    "train": "learn an embedding from images",
    "evaluate": "measure runs on classes they have never seen, and write a report with pictures",
    "classify": "tell the class of images from a few examples of each",
    "gallery": "keep images to be found again",
    "search": "find everything like this one",
    "export": "pass a network on: as a folder, as ONNX, or by torch.export",
    "reproduce": "make the paper's tables and figures from real data",
}
MEMORY = "there is not enough memory for this: a smaller batch, or fewer filters, takes less"
EXTRA = "the command line needs more than the library: pip install 'rankshot[train,gallery]', and [milvus] for Milvus"


def usage() -> str:
    lines = [f"  {name:10} {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: rankshot COMMAND [options]",
            "",
            "Few-shot learning by ranking.",
            "",
            *lines,
            "",
            "rankshot COMMAND --help tells the options of a command, rankshot --version the version.",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Exit codes: 0, 1 after an error, 2 where options cannot be read, 130 when stopped by Ctrl-C."""
    command, *options = arguments if arguments is not None else sys.argv[1:] or ["--help"]
    if command in ("-h", "--help"):
        print(usage())
        return 0
    if command == "--version":
        print(f"rankshot {__version__}")
        return 0
    if command not in COMMANDS:
        return failed(f"unknown command {command!r}: there is {', '.join(map(repr, COMMANDS))}")
    warnings.formatwarning = lambda message, *_, **__: f"rankshot: {message}\n"
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("rankshot").setLevel(logging.INFO)
    try:
        return int(importlib.import_module(f"rankshot.cli.{command}").main(options))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read what we print has gone: `| head`
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ImportError as error:
        return failed(f"{error}. {EXTRA}")
    except (ValueError, OSError, MemoryError, torch.OutOfMemoryError) as error:
        if os.environ.get("RANKSHOT_TRACEBACK"):
            raise
        return failed(describe(error))
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        return failed(MEMORY)


def describe(error: BaseException) -> str:
    """What went wrong, in words; an error of the system names its file first."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def failed(message: str) -> int:
    print(f"rankshot: {message}", file=sys.stderr)
    return 1
