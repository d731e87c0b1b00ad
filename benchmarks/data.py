"""Preparing data: how fast, in how much memory; and how much draft decoding gains.

`python -m benchmarks.data FOLDER` takes the folder that holds mini-imagenet/ and cub/ as they were downloaded, and writes
results/benchmarks/data.json.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from rankshot import data
from rankshot.data import mini_imagenet
from rankshot.data.decoding import decode
from rankshot.data.preparing import prepare
from rankshot.data.trees import open_tree
from rankshot.hardware import circumstances
from rankshot.preprocess import Preprocess

from .measure import in_a_process, interleaved
from .places import FOLDER


def anonymous_kib() -> int:
    """Resident memory that is not a file's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise RuntimeError("no RssAnon in /proc/self/status")


class Peak(threading.Thread):
    """The most anonymous memory while it runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.most = anonymous_kib()
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            self.most = max(self.most, anonymous_kib())

    def rise_mib(self) -> float:
        self.over.set()
        self.join()
        return (self.most - self.before) / 1024


def prepare_some(source: Path, per_class: int) -> dict[str, float]:
    """mini-ImageNet from its zips, up to `per_class` images of each class; and the loading after that."""
    trees = [open_tree(path) for path in sorted((source / "mini-imagenet").glob("*.zip"))]
    listing = mini_imagenet.listing(trees)
    listing = replace(
        listing,
        classes=[replace(class_listing, pictures=class_listing.pictures[:per_class]) for class_listing in listing.classes],
    )
    with tempfile.TemporaryDirectory() as root:
        peak = Peak()
        peak.start()
        start = time.perf_counter()
        manifest = prepare(listing, Path(root) / "mini-imagenet")
        seconds = time.perf_counter() - start
        preparing = peak.rise_mib()
        peak = Peak()
        peak.start()
        start = time.perf_counter()
        images = data.load("mini-imagenet", "train", root)
        loading = time.perf_counter() - start
        random = np.random.default_rng(0)
        for _ in range(100):
            images.images[random.integers(0, len(images), 128)].astype(np.float32)
        reading = peak.rise_mib()
    return {
        "images": manifest["images"],
        "seconds": seconds,
        "anonymous_mib": preparing,
        "load_seconds": loading,
        "load_anonymous_mib": reading,
    }


def drafts(source: Path) -> dict[str, float]:
    """Photographs of 500x375 to 84x84: as Pillow does it without being told, and as we do."""
    with zipfile.ZipFile(source / "cub" / "CUB_200_2011-sample.zip") as archive:
        photographs = [_photograph(archive.read(name)) for name in archive.namelist() if name.endswith(".jpg")]

    def plain() -> None:
        for content in photographs:
            with Image.open(io.BytesIO(content)) as image:
                np.asarray(image.convert("RGB").resize((84, 84), Image.Resampling.BICUBIC))

    def ours() -> None:
        for content in photographs:
            decode(content, Preprocess(3, 84, 84))

    seconds = interleaved({"plain": plain, "ours": ours}, rounds=11)
    per_image = {f"{name}_ms": 1e3 * total / len(photographs) for name, total in seconds.items()}
    return {"photographs": len(photographs), **per_image, "ratio": seconds["plain"] / seconds["ours"]}


def _photograph(content: bytes) -> bytes:
    file = io.BytesIO()
    with Image.open(io.BytesIO(content)) as image:
        image.convert("RGB").resize((500, 375)).save(file, "jpeg", quality=90)
    return file.getvalue()


def main(source: Path) -> None:
    amounts = [json.loads(in_a_process("benchmarks.data", source, per_class)) for per_class in (100, 300, 600)]
    results = {**circumstances(0), "mini-imagenet": amounts, "draft": drafts(source)}
    (FOLDER / "data.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(prepare_some(Path(sys.argv[1]), int(sys.argv[2]))))
    else:
        main(Path(sys.argv[1]))
