"""A child tries one input, commands as a shell gives them or a call of the library, and writes down what came of it."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from .arena import Arena
from .case import Case
from .watched import watch

OUTCOME, EVENTS, STACK = "outcome.json", "events", "stack"
MOST_TOLD = 20_000  # characters of an output
MOST_EVENTS = 20
KEPT_OPEN: list[TextIO] = []


def attempt(case: Case, arena: Arena, call: Callable[[int], str] | None = None) -> None:
    """All of it, in the child that this is."""
    _settle(arena)
    Path("/proc/self/clear_refs").write_text("5")  # the most memory so far was for making the input
    steps: list[dict[str, Any]] = []
    begins = time.monotonic()
    if case.call is not None and call is not None:
        number = case.call
        steps.append(_one(arena, ["call", str(number)], lambda: _print(call(number))))
    for arguments in case.steps:
        steps.append(_one(arena, arguments, lambda given=arguments: _main(given)))  # type: ignore[misc]
    content = {"steps": steps, "seconds": time.monotonic() - begins}
    (arena.notes / OUTCOME).write_text(json.dumps(content))


def outcome_of(arena: Arena) -> dict[str, Any] | None:
    """What the child has written; None: it did not come to it."""
    try:
        content: dict[str, Any] = json.loads((arena.notes / OUTCOME).read_text())
    except (OSError, ValueError):
        return None
    return content


def events_of(arena: Arena) -> list[str]:
    """What the child did that it should not."""
    path = arena.notes / EVENTS
    return list(dict.fromkeys(path.read_text(errors="replace").splitlines())) if path.exists() else []


def said_by(arena: Arena) -> dict[str, str]:
    """What a child that came to no outcome had printed, and where it was."""
    said = {}
    for name in ("out", "err", STACK):
        path = arena.notes / name
        said[name] = path.read_text(errors="backslashreplace")[-MOST_TOLD:] if path.exists() else ""
    return said


def _settle(arena: Arena) -> None:
    os.environ.update(arena.environment())
    (arena.work / "tmp").mkdir(exist_ok=True)
    tempfile.tempdir = None
    os.chdir(arena.work)
    sys.setrecursionlimit(1000)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    events = os.open(arena.notes / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    count = 0

    def tell(event: str) -> None:
        nonlocal count
        count += 1
        if count <= MOST_EVENTS:
            os.write(events, event.encode("utf-8", "backslashreplace").replace(b"\n", b"?") + b"\n")

    stack = (arena.notes / STACK).open("w")
    faulthandler.enable(stack)
    faulthandler.register(signal.SIGUSR1, stack)  # whoever ends a child asks first where it is
    KEPT_OPEN.append(stack)
    watch((arena.work, arena.notes), tell)


def _one(arena: Arena, arguments: list[str], act: Callable[[], int]) -> dict[str, Any]:
    files = [os.open(arena.notes / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in ("out", "err")]
    for descriptor, file in enumerate(files, start=1):
        os.dup2(file, descriptor)
    sys.stdout, sys.stderr = (  # as a shell has them
        os.fdopen(
            descriptor, "w", encoding="utf-8", errors="strict" if descriptor == 1 else "backslashreplace", closefd=False
        )
        for descriptor in (1, 2)
    )
    raised = ""
    code: int | None = None
    try:
        code = act()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:  # whatever it is: that is the question
        raised = traceback.format_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        raised += traceback.format_exc()
    texts = [Path(f"/proc/self/fd/{file}").read_bytes().decode("utf-8", "surrogateescape")[:MOST_TOLD] for file in files]
    for file in files:
        os.close(file)
    return {"arguments": arguments, "code": code, "out": texts[0], "err": texts[1], "raised": raised}


def _main(arguments: list[str]) -> int:
    from rankshot.cli.main import main

    return main(arguments)


def _print(answer: str) -> int:
    print(answer)
    return 0
