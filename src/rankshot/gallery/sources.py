"""Files that vectors are made of: what to call them by, and whether they have changed since."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rankshot.files import digest_of

from .pictures import own_name
from .store import Source

MOST_BYTES = 2**29  # no image is larger


def id_of(image: Any) -> str | None:
    """The path of an image, where it has one, without the detours: ./a//b.jpg is a/b.jpg.

    >>> id_of("./photos//cat.jpg")
    'photos/cat.jpg'
    """
    name = own_name(image)
    if name is None:
        return None
    plain = os.path.normpath(name)
    if ".." in Path(name).parts and os.path.realpath(plain) != os.path.realpath(name):
        return name  # behind a link, .. leads elsewhere
    return plain


def source_of(image: Any) -> Source | None:
    """A file as it is now; None where the image is none, or cannot be read."""
    name = own_name(image)
    if name is None:
        return None
    try:
        status = os.stat(name)
        digest = digest_of(Path(name), MOST_BYTES, follow=True)
    except OSError:
        return None
    return None if digest is None else Source(status.st_size, status.st_mtime_ns, digest)


def has_changed(image: Any, before: Source) -> bool:
    """By its size and time and, where these are others, by its content. What cannot be read has not changed."""
    try:
        status = os.stat(image)
    except OSError:
        return False
    if (status.st_size, status.st_mtime_ns) == (before.size, before.time):
        return False
    now = source_of(image)
    return now is not None and now.digest != before.digest
