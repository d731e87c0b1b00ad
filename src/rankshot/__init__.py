"""Few-shot learning by ranking."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"  # first: the parts below tell it

from . import losses, methods, models, ranking
from .models import from_pretrained, save_pretrained

if TYPE_CHECKING:
    from .gallery import Embedder, FewShotClassifier, Gallery

__all__ = [
    "Embedder",
    "FewShotClassifier",
    "Gallery",
    "from_pretrained",
    "losses",
    "methods",
    "models",
    "ranking",
    "save_pretrained",
]


def __getattr__(name: str) -> Any:
    """What needs more than torch is loaded when it is asked for."""
    if name in ("Embedder", "FewShotClassifier", "Gallery"):
        from . import gallery

        return getattr(gallery, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
