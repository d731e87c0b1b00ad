"""Few-shot learning by ranking."""

from . import losses, models, ranking

__all__ = ["losses", "models", "ranking"]
__version__ = "0.1.0"
