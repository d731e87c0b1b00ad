"""People's own images: embedding against the bare network, and a gallery of 100,000: `python -m benchmarks.gallery`.

Writes results/benchmarks/gallery.json. Images are JPEG files of 84x84 pixels, drawn here, on a disk.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from rankshot.fewshot.answerer import embed
from rankshot.gallery import Embedder, Gallery
from rankshot.hardware import circumstances

from .measure import interleaved, timed
from .places import FOLDER

SEED, IMAGES, VECTORS, DIMENSIONS, QUERIES, ROUNDS = 0, 512, 100_000, 64, 256, 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = circumstances(SEED) | {"embedding": embedding(Path(folder)), "gallery": gallery(Path(folder) / "g")}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "gallery.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


def embedding(folder: Path) -> dict[str, Any]:
    """Files against pixels that are ready, by the same network, in turns."""
    random = np.random.default_rng(SEED)
    paths = [folder / f"{number}.jpg" for number in range(IMAGES)]
    for path in paths:
        coarse = random.integers(0, 256, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((84, 84), Image.Resampling.BICUBIC).save(path, quality=90)
    embedder = Embedder("conv4-mini-imagenet")
    ready = torch.rand(IMAGES, *embedder.preprocess.shape)

    def bare() -> None:
        for chunk in ready.split(64):  # type: ignore[no-untyped-call]
            embed(embedder.network, chunk)

    seconds = interleaved({"bare": bare, "files": lambda: embedder(paths)}, ROUNDS)
    return {
        "images": IMAGES,
        "images_a_second": {name: IMAGES / taken for name, taken in seconds.items()},
        "of_the_bare_network": seconds["bare"] / seconds["files"],
    }


def gallery(folder: Path) -> dict[str, Any]:
    random = np.random.default_rng(SEED)
    vectors = random.normal(size=(VECTORS, DIMENSIONS)).astype(np.float32)
    made = Gallery(folder, dimensions=DIMENSIONS)
    ids = [f"image-{number}.jpg" for number in range(VECTORS)]
    notes = [{"colour": "red" if number % 10 == 0 else "blue", "number": number} for number in range(VECTORS)]
    added = timed(lambda: made.add(vectors, ids, notes))
    made.close()
    opening = [timed(lambda: Gallery.open(folder).close()) for _ in range(ROUNDS)]
    opened = Gallery.open(folder)
    first = timed(lambda: opened.search(vectors[0], 10))
    filtered = interleaved(
        {
            "sql": lambda: opened.search(vectors[0], 10, {"colour": "red"}),
            "function": lambda: opened.search(vectors[0], 10, lambda metadata: metadata["colour"] == "red"),
        },
        ROUNDS,
    )
    searching = [timed(lambda: opened.search_each(vectors[:QUERIES], 10)) for _ in range(ROUNDS)]
    return {
        "vectors": VECTORS,
        "dimensions": DIMENSIONS,
        "add_seconds": added,
        "open_seconds": statistics.median(opening),
        "first_search_seconds": first,
        "search_ms_a_query": 1000 * statistics.median(searching) / QUERIES,
        # A function of the metadata is what every filter was: JSON is decoded for every row.
        "filtered_ms": {name: 1000 * taken for name, taken in filtered.items()},
        "sql_is_faster_by": filtered["function"] / filtered["sql"],
    }


if __name__ == "__main__":
    main()
