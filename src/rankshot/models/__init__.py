"""Embedding networks: images in, embeddings out."""

from .conv4 import Conv4
from .mirrored import Mirrored
from .network import register, wrap
from .pretrained import from_pretrained
from .saving import save_pretrained
from .shipped import shipped

__all__ = ["Conv4", "Mirrored", "from_pretrained", "register", "save_pretrained", "shipped", "wrap"]
