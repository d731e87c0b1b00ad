"""Embedding networks: images in, embeddings out."""

from .conv4 import Conv4
from .pretrained import from_pretrained

__all__ = ["Conv4", "from_pretrained"]
