"""Memory that an update frees, kept for the next one."""

from __future__ import annotations

import ctypes
import os

# Of glibc's mallopt: from what size on a block is mapped by itself, and how much must be free at the end to be given back.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
NEVER, LARGE = 2**31 - 1, 2**30


def keep_freed_memory() -> bool:
    """Tell the C library to keep what is freed; False where it cannot be told, or somebody has told it otherwise.

    By itself glibc gives large blocks back at once. Every update then gets the same memory from the system anew, page by
    page, which takes a good part of the time of training on a CPU (`benchmarks/heap.py`). It is for the whole process and
    for good, so a library must not do it: only `rankshot train` does.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, another system
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE) and mallopt(M_TRIM_THRESHOLD, NEVER))
