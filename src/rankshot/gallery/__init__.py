"""People's own images: teach classes with a few pictures, find everything like this one.

`FewShotClassifier` classifies, `Gallery` searches, and `Embedder` makes vectors of images for both.
"""

from typing import TYPE_CHECKING, Any

from .adapting import Adaptation, adapt
from .embedder import Embedder
from .gallery import Duplicate, Gallery, Item
from .pictures import Failure, Unreadable
from .rebuilding import Rebuilt, rebuild
from .store import Damaged, Hit, register

if TYPE_CHECKING:
    from .classifier import FewShotClassifier, Neighbour

__all__ = [
    "Adaptation",
    "Damaged",
    "Duplicate",
    "Embedder",
    "Failure",
    "FewShotClassifier",
    "Gallery",
    "Hit",
    "Item",
    "Neighbour",
    "Rebuilt",
    "Unreadable",
    "adapt",
    "rebuild",
    "register",
]


def __getattr__(name: str) -> Any:
    """The classifier needs scikit-learn, and nothing else here does."""
    if name in ("FewShotClassifier", "Neighbour"):
        from . import classifier

        return getattr(classifier, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
