"""What Python itself tells of a process: files that it would write outside of its folder, programs that it would start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile"}
# Which arguments are paths, and which the folder that one is relative to.
CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.utime": ((0, 3),),
}
HARMLESS = ("/dev/null", "/dev/tty", "/dev/std", "/dev/fd/", "/dev/full", "/dev/zero", "/proc/")


def watch(inside: Sequence[Path], tell: Callable[[str], None]) -> None:
    """From now on, for good: `tell` hears of everything outside of `inside`."""
    allowed = tuple(os.path.realpath(folder) + os.sep for folder in inside)

    def is_outside(path: Any, base: Any, follows: bool) -> bool:
        if isinstance(path, int) or path is None:
            return False
        name = os.fsdecode(path)
        if isinstance(base, int) and base >= 0:
            name = os.path.join(os.readlink(f"/proc/self/fd/{base}"), name)
        real = os.path.realpath(name)
        if not follows:
            plain = os.path.abspath(name)  # without dots
            real = os.path.join(os.path.realpath(os.path.dirname(plain)), os.path.basename(plain))
        return not (real + os.sep).startswith(allowed) and not real.startswith(HARMLESS)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        try:
            if event == "open":
                path, _, flags = arguments
                if isinstance(flags, int) and flags & WRITES:
                    follows = not flags & os.O_NOFOLLOW and flags & (os.O_CREAT | os.O_EXCL) != os.O_CREAT | os.O_EXCL
                    if is_outside(path, None, follows):
                        tell(f"writes {os.fsdecode(path)}")
            elif event in CHANGES:
                for index, base in CHANGES[event]:
                    if is_outside(arguments[index], None if base is None else arguments[base], event == "os.truncate"):
                        tell(f"{event} {os.fsdecode(arguments[index])}")
            elif event in STARTS:
                tell(f"starts {arguments[0]!r}")
        except (OSError, ValueError, TypeError, IndexError):  # of a path that leads nowhere
            return

    sys.addaudithook(hook)
