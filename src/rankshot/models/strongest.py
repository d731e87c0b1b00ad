"""Which network photographs are seen by where nobody says: the strongest that is installed."""

from __future__ import annotations

from .imagenet import SOURCES, is_installed

# The strongest first, as `python -m benchmarks.photographs` has measured them (docs/benchmarks.md).
PRETRAINED = ("efficientnet-lite2", "efficientnet-lite1", "efficientnet-lite0")
COMES_ALONG = "conv4-mini-imagenet"


def strongest() -> str:
    """The name of its weights, as `Embedder`, `--model` and `--init` take it."""
    return next((name for name in PRETRAINED if is_installed(name)), COMES_ALONG)


def why(name: str) -> str:
    """A sentence on that choice, and how to have a stronger one.

    >>> why("efficientnet-lite2")
    'efficientnet-lite2, the strongest one for photographs that pip can install'
    """
    if name == PRETRAINED[0]:
        return f"{name}, the strongest one for photographs that pip can install"
    better = PRETRAINED[: PRETRAINED.index(name)] if name in PRETRAINED else PRETRAINED
    how = f"pip install {SOURCES[better[0]].distribution} (or 'rankshot[photographs]')"
    return f"{name}, the strongest one for photographs that is installed; a stronger one comes with {how}"
