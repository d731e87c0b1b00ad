"""Which network photographs are seen by where nobody says: the strongest that is installed."""

from __future__ import annotations

from .imagenet import SOURCES, is_installed

# The strongest first, as `python -m benchmarks.photographs` has measured them (docs/benchmarks.md).
PRETRAINED = ("efficientnet-lite2", "efficientnet-lite1", "efficientnet-lite0")
COMES_ALONG = "resnet12-mini-imagenet"
FASTEST = "conv4-mini-imagenet"  # comes along too; a CPU can teach it


def strongest() -> str:
    """The name of its weights, as `Embedder`, `--model` and `--init` take it."""
    return next((name for name in PRETRAINED if is_installed(name)), COMES_ALONG)


def strongest_to_teach(has_gpu: bool) -> str:
    """The same for training: without a GPU, ResNet-12 would take hours."""
    name = strongest()
    return FASTEST if name == COMES_ALONG and not has_gpu else name


def why(name: str) -> str:
    """A sentence on that choice, and how to have a stronger one.

    >>> why("efficientnet-lite2")
    'efficientnet-lite2, the strongest one for photographs that pip can install'
    """
    if name == PRETRAINED[0]:
        return f"{name}, the strongest one for photographs that pip can install"
    better = PRETRAINED[: PRETRAINED.index(name)] if name in PRETRAINED else PRETRAINED
    how = f"pip install {SOURCES[better[0]].distribution} (or 'rankshot[photographs]')"
    which = "that a CPU can teach" if name == FASTEST else "that is installed"
    return f"{name}, the strongest one for photographs {which}; a stronger one comes with {how}"
