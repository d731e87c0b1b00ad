"""What is disturbed: pieces of work that acknowledge what they have done, and checks of what must be there afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

Tell = Callable[[str], None]


class Disturbed(Exception):
    """An error as a user sees it: in one sentence."""


class Workload(Protocol):
    """One piece of work in a folder of its own, `place`, whose parent holds what it works on.

    room         bytes on the disk that it takes, about
    is_endless   it goes on until it is stopped; its check leaves what it finds as it is, so that more can follow
    """

    name: str
    room: int
    is_endless: bool

    def ready(self, place: Path) -> None:
        """What must be there before: nothing disturbs this."""
        ...

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        """Do it, or go on with it. `tell` is called when a call has returned; `before` is what was told in earlier times.

        Errors that a user would see end it, as `Disturbed`.
        """
        ...

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        """What is wrong with what lies there; `acknowledged` is all that was told of. The work is finished here: what was
        interrupted must be usable. `reference` is the same work undisturbed."""
        ...


class FromNothing:
    """Work that finds nothing in its place, and ends."""

    is_endless = False

    def ready(self, place: Path) -> None:
        """Nothing is needed."""


def command(*arguments: str) -> str:
    """A command line that must work; its output. An error of it is `Disturbed`."""
    from rankshot.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    if code:
        lines = [line for line in err.getvalue().splitlines() if line.startswith("rankshot: ")]
        if not lines:
            raise AssertionError(f"exit code {code} without a sentence: {err.getvalue()[-500:]!r}")
        raise Disturbed(lines[-1])
    return out.getvalue()


@contextlib.contextmanager
def errors_as_seen() -> Any:
    """Of the library: an error of use, in one sentence."""
    try:
        yield
    except (OSError, ValueError) as error:
        if not str(error).strip() or "\n" in str(error):
            raise AssertionError(f"not one sentence: {error!r}") from error
        raise Disturbed(str(error)) from error


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tensors_in(path: Path) -> dict[str, bytes]:
    """Bit for bit."""
    from safetensors.numpy import load_file

    return {name: tensor.tobytes() for name, tensor in load_file(path).items()}


def json_in(path: Path, without: Sequence[str] = ()) -> Any:
    content = json.loads(path.read_text())
    return {name: value for name, value in content.items() if name not in without}


def beside(place: Path, name: str) -> str:
    """A good folder that lies beside the place of work, relative to where the process is."""
    return os.path.relpath(place.parent / name)
