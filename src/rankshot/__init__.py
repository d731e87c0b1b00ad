"""Few-shot learning by ranking."""

from .version import __version__ as __version__

TYPE_CHECKING = False  # as in `typing`, which takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from . import losses, methods, models, ranking
    from .gallery import Embedder, FewShotClassifier, Gallery
    from .models import from_pretrained, save_pretrained
    from .preprocess import Preprocess

__all__ = [
    "Embedder",
    "FewShotClassifier",
    "Gallery",
    "Preprocess",
    "from_pretrained",
    "losses",
    "methods",
    "models",
    "ranking",
    "save_pretrained",
]
_PARTS = ("losses", "methods", "models", "ranking")
_WITHIN = {
    "Embedder": "gallery",
    "FewShotClassifier": "gallery",
    "Gallery": "gallery",
    "Preprocess": "preprocess",
    "from_pretrained": "models",
    "save_pretrained": "models",
}


def __getattr__(name: str) -> "Any":
    """Imported when it is asked for: torch takes seconds, in which the command line wants to hear Ctrl-C already."""
    from importlib import import_module

    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name in _WITHIN:
        return getattr(import_module(f"{__name__}.{_WITHIN[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
