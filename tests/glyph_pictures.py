"""Drawings as people make them: strokes of ink on white, of a few shapes, never twice the same."""

import io

import numpy as np
from PIL import Image, ImageDraw

from rankshot import Embedder

SHAPES = {
    "cross": [[(0.2, 0.2), (0.8, 0.8)], [(0.8, 0.2), (0.2, 0.8)]],
    "stairs": [[(0.1, 0.9), (0.1, 0.6), (0.4, 0.6), (0.4, 0.3), (0.8, 0.3), (0.8, 0.1)]],
    "triangle": [[(0.5, 0.1), (0.9, 0.85), (0.1, 0.85), (0.5, 0.1)]],
    "line": [[(0.5, 0.1), (0.5, 0.9)]],
}


def drawing(shape, seed=0, size=105):
    """The bytes of a PNG."""
    random = np.random.default_rng(seed)
    image = Image.new("RGB", (size, size), "white")
    draw = ImageDraw.Draw(image)
    for stroke in SHAPES[shape]:
        points = [tuple(size * (np.array(point) + random.normal(0, 0.02, 2))) for point in stroke]
        draw.line(points, fill="black", width=max(2, size // 25), joint="curve")
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def embedder_of(name):
    return Embedder(name, device="cpu")
