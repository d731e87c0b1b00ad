"""People's own images: teach classes with a few pictures."""

from .classifier import FewShotClassifier, Neighbour
from .embedder import Embedder
from .pictures import Failure, Unreadable

__all__ = ["Embedder", "Failure", "FewShotClassifier", "Neighbour", "Unreadable"]
