"""Image files to test with."""

import io
import os

import numpy as np
from PIL import Image, ImageDraw


def pixels(seed=0, size=(24, 32), channels=3):
    """Smooth, so that resizing and JPEG keep it: (H, W, C)."""
    random = np.random.default_rng(seed)
    small = Image.fromarray(random.integers(0, 256, (3, 4, 3), dtype=np.uint8))
    return np.asarray(small.resize(size[::-1], Image.Resampling.BICUBIC))


def photograph(size, seed=0):
    """Like a photograph, as Pillow has it: smooth light, things with edges, and noise: every way to resize shows."""
    random = np.random.default_rng(seed)
    image = Image.fromarray(pixels(seed, size[::-1]))
    draw = ImageDraw.Draw(image)
    for shape in 20 * [draw.ellipse, draw.rectangle]:
        left, top, width, height = (int(share * side) for share, side in zip(random.random(4), 2 * size, strict=True))
        colour = tuple(random.integers(0, 256, 3).tolist())
        shape((left, top, left + width // 4, top + height // 4), fill=colour, outline="black", width=max(1, width // 100))
    noise = random.normal(0, 12, size[::-1]).astype(np.int16)[..., None]
    return Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))


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
