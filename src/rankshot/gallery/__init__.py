"""People's own images: teach classes with a few pictures, find everything like this one."""

from typing import TYPE_CHECKING, Any

from .embedder import Embedder
from .gallery import Duplicate, Gallery
from .pictures import Failure, Unreadable
from .store import Damaged, Hit, register

if TYPE_CHECKING:
    from .classifier import FewShotClassifier, Neighbour

__all__ = [
    "Damaged",
    "Duplicate",
    "Embedder",
    "Failure",
    "FewShotClassifier",
    "Gallery",
    "Hit",
    "Neighbour",
    "Unreadable",
    "register",
]


def __getattr__(name: str) -> Any:
    """The classifier needs scikit-learn, and nothing else here does."""
    if name in ("FewShotClassifier", "Neighbour"):
        from . import classifier

        return getattr(classifier, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
