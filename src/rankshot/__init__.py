"""Few-shot learning by ranking."""

__version__ = "0.1.0"  # first: the parts below tell it

from . import losses, methods, models, ranking
from .models import from_pretrained

__all__ = ["from_pretrained", "losses", "methods", "models", "ranking"]
