"""Image files to test with."""

import io
import os

import numpy as np
from PIL import Image


def pixels(seed=0, size=(24, 32), channels=3):
    """Smooth, so that resizing and JPEG keep it: (H, W, C)."""
    random = np.random.default_rng(seed)
    small = Image.fromarray(random.integers(0, 256, (3, 4, 3), dtype=np.uint8))
    return np.asarray(small.resize(size[::-1], Image.Resampling.BICUBIC))


def encoded(array, kind="png", **options):
    file = io.BytesIO()
    (array if isinstance(array, Image.Image) else Image.fromarray(array)).save(file, kind, **options)
    return file.getvalue()


def write(path, seed=0, kind=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(pixels(seed), kind or path.suffix[1:].replace("jpg", "jpeg"), **options))
    return path


def class_folders(root, classes=6, per_class=4, kind="png"):
    """root/c0/0.png …"""
    for label in range(classes):
        for number in range(per_class):
            write(root / f"c{label}" / f"{number}.{kind}", seed=100 * label + number)
    return root


def deep_folder(root, depth=1200):
    """Folders within each other, deeper than Python can go, with an image in the last of them; it takes them away again."""
    here = os.getcwd()
    root.mkdir()
    try:
        os.chdir(root)
        for _ in range(depth):
            os.mkdir("a")
            os.chdir("a")
        with open("x.png", "wb"):
            pass
        yield root
        for _ in range(depth):
            for name in os.listdir():
                os.rmdir(name) if os.path.isdir(name) else os.unlink(name)
            os.chdir("..")
    finally:
        os.chdir(here)
