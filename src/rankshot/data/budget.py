"""Memory that all threads share: who wants more than is left waits, who wants more than there is at all is refused.

Two budgets, for a thread that holds a file waits until it may decode it, and who decodes waits for nobody: so nobody waits
for ever. Together with the file that is being read, and what unpacking an archive takes, they stay below a GiB.
"""

from __future__ import annotations

import threading

MIB = 2**20


class OverBudget(ValueError):
    """More than there is at all."""


class Budget:
    """So many bytes, for all threads together."""

    def __init__(self, size: int) -> None:
        self.size = self.left = size
        self._changed = threading.Condition()  # with a lock that its owner may take twice, see `Claim.__del__`
        self._queue = threading.Lock()  # one waits at a time: small claims do not pass a large one by for ever

    def claim(self, size: int, what: str) -> Claim:
        """`size` bytes of it, as soon as they are free; `what` wants them, in words."""
        if size > self.size:
            most = f"at most {self.size // MIB:,} MiB are given to one"
            raise OverBudget(f"{what} would take {-(-size // MIB):,} MiB of memory, and {most}")
        with self._queue, self._changed:
            self._changed.wait_for(lambda: self.left >= size)
            self.left -= size
        return Claim(self, size)

    def give_back(self, size: int) -> None:
        with self._changed:
            self.left += size
            self._changed.notify_all()


class Claim:
    """Bytes of a budget, held until they are released, or forgotten: an error or Ctrl-C anywhere loses none of them."""

    def __init__(self, budget: Budget, size: int) -> None:
        self._budget, self._size = budget, size

    def release(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._budget.give_back(size)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


PIXELS = Budget(640 * MIB)  # of pictures while they are decoded
FILES = Budget(128 * MIB)  # of files that were read and are not decoded yet; the next one is being read meanwhile
MOST_BYTES = FILES.size  # of one file
