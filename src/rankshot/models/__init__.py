"""Embedding networks: images in, embeddings out."""

from .conv4 import Conv4

__all__ = ["Conv4"]
