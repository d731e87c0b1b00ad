"""`rankshot`: finds the command, and turns errors of use into one line.

What takes long to import, torch before all, is imported once Ctrl-C is listened to: see `interrupts`.
"""

from __future__ import annotations

import os
import sys

from .interrupts import CODE as STOPPED
from .interrupts import Interrupts, end_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "data": "prepare, check and look at data sets, known ones and your own",
    "train": "learn an embedding from images",
    "evaluate": "measure runs on classes they have never seen, and write a report with pictures",
    "classify": "tell the class of images from a few examples of each",
    "gallery": "keep images to be found again",
    "search": "find everything like this one",
    "adapt": "learn a small map that makes embeddings you have already rank better",
    "serve": "teach and recognise in a browser, or over HTTP",
    "export": "pass a network on: as a folder, as ONNX, or by torch.export",
    "reproduce": "make the paper's tables and figures from real data",
}
MEMORY = "there is not enough memory for this: a smaller batch, or fewer filters, takes less"
OF_MEMORY = (  # how torch says so
    "allocate memory",
    "out of memory",
    "not enough memory",
    "bad_alloc",
    "alloc_failed",
    "start new thread",
    "size calculation overflow",
    "multiplication overflow",
)
# Packages that a whole command needs; whoever needs another one for an option says so.
EXTRA_PACKAGES = ("faiss", "fastapi", "matplotlib", "PIL", "pymilvus", "rich", "safetensors", "sklearn", "tyro", "uvicorn")
EXTRA = (
    "the command line needs more than the library: pip install 'rankshot[train,gallery]', and [milvus] for Milvus, [faiss] "
    "for FAISS, [serve] for the page; [all] has all of these"
)
GONE = 141  # as of a process that a broken pipe has ended
LONGEST = 2000  # characters of a message


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
    """Run a command: with these arguments, or as the process that was started with some.

    Exit codes: 0; 1 after an error; 2 where options cannot be read; 130 when stopped by Ctrl-C; 141 where whoever reads
    what is printed has gone.
    """
    try:
        interrupts = Interrupts()
    except KeyboardInterrupt:
        end_at_once()
    try:
        from .streams import make_ready

        make_ready()
        try:
            code = ended(run((sys.argv[1:] if arguments is None else arguments) or ["--help"], interrupts))
        except SystemExit as asked:  # help was asked for, or options cannot be read
            code = ended(0)
            if not code and not is_one_of_several():
                raise
            code = code or (asked.code if isinstance(asked.code, int) else int(bool(asked.code)))
        if arguments is None and is_one_of_several():
            os._exit(code)  # see `processes.joined`
        return code
    finally:
        if arguments is not None:
            interrupts.end()


def is_one_of_several() -> bool:
    """Whether torchrun has started this process beside others; as `processes` knows it, which imports torch."""
    is_told = os.environ.get("WORLD_SIZE", "1") != "1" and "LOCAL_RANK" in os.environ
    return is_told and not os.environ.get("RANKSHOT_ALONE")


def run(arguments: Sequence[str], interrupts: Interrupts) -> int:
    """A command, whose errors are told."""
    from importlib import import_module

    from rankshot.version import __version__

    command, *options = arguments
    if command not in (*COMMANDS, "-h", "--help", "--version"):
        return failed(f"unknown command {command[:LONGEST]!r}: there is {', '.join(map(repr, COMMANDS))}")
    tell_in_lines()
    try:
        if command in ("-h", "--help"):
            print(usage())
            return 0
        if command == "--version":
            print(f"rankshot {__version__}")
            return 0
        module = import_module(f"rankshot.cli.{command}")
        with interrupts:
            return int(module.main(options))
    except KeyboardInterrupt:
        if not is_one_of_several() or os.environ.get("RANK") == "0":
            say_aside("stopped")
        return STOPPED
    except BrokenPipeError:  # whoever read what we print has gone: `| head`
        return GONE
    except ImportError as error:
        is_extra = (error.name or "").partition(".")[0] in EXTRA_PACKAGES
        return failed(f"{error}. {EXTRA}" if is_extra else str(error))
    except (ValueError, OSError, MemoryError) as error:
        if os.environ.get("RANKSHOT_TRACEBACK"):
            raise
        return failed(*describe(error))
    except RuntimeError as error:
        if os.environ.get("RANKSHOT_TRACEBACK") or not any(word in str(error).lower() for word in OF_MEMORY):
            raise
        return failed(MEMORY)


def ended(code: int) -> int:
    """Once everything is written that was printed: what goes wrong when Python itself ends, nobody can tell of."""
    from .streams import give_up

    try:
        sys.stderr.flush()
    except OSError:
        give_up(sys.stderr)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        give_up(sys.stdout)
        return code or GONE
    except OSError as error:
        give_up(sys.stdout)
        return code or failed(*describe(error))
    return code


def tell_in_lines() -> None:
    """Logs and warnings: a line each, with nothing in it that a terminal would obey."""
    import logging
    import warnings

    from rankshot.terminal import printable

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return printable(super().format(record))

    warnings.formatwarning = lambda message, *_, **__: f"rankshot: {printable(message)}\n"
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("rankshot").setLevel(logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(Line("%(message)s"))
    logging.raiseExceptions = False  # nobody may be there to hear it


def describe(error: BaseException) -> list[str]:
    """What went wrong, in words; an error of the system names its file first. Advice that comes with it follows."""
    message = str(error) or (MEMORY if isinstance(error, MemoryError) else type(error).__name__)
    if isinstance(error, OSError) and error.strerror:
        place = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        message = error.strerror if place is None else f"{place}: {error.strerror}"
    message = message if len(message) <= LONGEST else message[:LONGEST] + " …"
    return [message, *"\n".join(getattr(error, "__notes__", ())).splitlines()]


def failed(message: str, *more: str) -> int:
    say_aside(f"rankshot: {message}", *more)
    return 1


def say_aside(*lines: str) -> None:
    """On standard error, if anybody is there."""
    from rankshot.terminal import say

    from .streams import give_up

    try:
        say(*lines, stream=sys.stderr)
    except OSError:
        give_up(sys.stderr)
