"""Images and labels: data sets by name or by place, and batches of them.

`load` gives an `ImageSet`: images (n, C, H, W) uint8, labels (n,), and the names of the classes.
"""

from .batches import ClassBatchSampler
from .image_set import ImageSet
from .loading import all_prepared, load, prepared, preprocess_of
from .registered import register
from .sheet import contact_sheet

__all__ = [
    "ClassBatchSampler",
    "ImageSet",
    "all_prepared",
    "contact_sheet",
    "load",
    "prepared",
    "preprocess_of",
    "register",
]
