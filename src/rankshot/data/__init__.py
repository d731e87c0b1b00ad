"""Images and labels: what there is, how it is loaded, how batches are drawn."""

from .batches import ClassBatchSampler
from .image_set import ImageSet
from .loading import load

__all__ = ["ClassBatchSampler", "ImageSet", "load"]
