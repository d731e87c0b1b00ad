"""Embedding networks: images in, embeddings out."""

from .conv4 import Conv4
from .pretrained import from_pretrained
from .shipped import shipped

__all__ = ["Conv4", "from_pretrained", "shipped"]
