"""From pictures to vectors, beside the bare network: `python -m benchmarks.embedding [MODEL …]`, into results/benchmarks.

The bare network gets batches of floats that lie where it computes, of the size that suits it best. `Embedder` gets decoded
pictures, bytes of the network's own size, and gives unit vectors on the CPU. From JPEG files, decoding comes before that,
and its own rate stands beside it. All in turns, so that a noisy machine is noisy for all.

Both compute in float32. A GPU may also multiply in shorter numbers (TF32), which `Embedder` does not: vectors of one
gallery may come from a CPU too. What the bare network does with them stands beside it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from rankshot.gallery import Embedder
from rankshot.gallery.embedder import as_precisely_as_a_cpu
from rankshot.gallery.pictures import decoded
from rankshot.hardware import circumstances
from rankshot.models.imagenet import is_installed
from rankshot.models.strongest import COMES_ALONG, FASTEST, PRETRAINED

from .measure import interleaved
from .places import FOLDER

SEED, ROUNDS = 0, 5
IMAGES = {"cpu": 64, "cuda": 4096}
BATCHES = {"cpu": (1, 2, 4, 8, 32), "cuda": (64, 256, 1024)}
FILE_SIZE = (500, 375)  # pixels, as photographs of ImageNet have


@torch.no_grad()
def through(network: nn.Module, images: Tensor, batch: int) -> None:
    for part in images.split(batch):  # type: ignore[no-untyped-call]
        found = network(part)
    found[0, 0].item()  # waits for it


def written(folder: Path, count: int) -> list[Path]:
    """JPEG files of as many pictures."""
    random, paths = np.random.default_rng(SEED), []
    for number in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        paths.append(folder / f"{number}.jpg")
        coarse.resize(FILE_SIZE, Image.Resampling.BICUBIC).save(paths[-1], quality=90)
    return paths


def measured(name: str) -> dict[str, Any]:
    embedder = Embedder(name)
    kind = embedder.device.type
    pictures = list(
        np.random.default_rng(SEED).integers(0, 256, (IMAGES[kind], *embedder.preprocess.shape), dtype=np.uint8)
    )
    floats = torch.from_numpy(np.stack(pictures)).to(embedder.device).float() / 255
    contenders: dict[str, Callable[[], Any]] = {
        f"bare, {batch} at once": _bare(embedder.network, floats, batch) for batch in BATCHES[kind]
    }
    if kind == "cuda":
        contenders |= {
            f"TF32, {batch} at once": partial(through, embedder.network, floats, batch) for batch in BATCHES[kind]
        }
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), IMAGES["cpu"])
        contenders["pictures"] = lambda: embedder(pictures)
        contenders["files"] = lambda: embedder(files)
        contenders["decoding"] = lambda: list(decoded(files, embedder.preprocess, 32))
        seconds = interleaved(contenders, ROUNDS)
    rates = {
        contender: (len(files) if contender in ("files", "decoding") else len(pictures)) / each
        for contender, each in seconds.items()
    }
    bare = max(rate for contender, rate in rates.items() if contender.startswith("bare"))
    found = {"images_a_second": rates, "share_of_the_bare_network": rates["pictures"] / bare}
    print(name, json.dumps(found), flush=True)
    return {"size": embedder.preprocess.height, "dimensions": embedder.dimensions, **found}


def _bare(network: nn.Module, images: Tensor, batch: int) -> Callable[[], None]:
    def run() -> None:
        with as_precisely_as_a_cpu(images.device):
            through(network, images, batch)

    return run


def main() -> None:
    results: dict[str, Any] = {**circumstances(SEED), "images": IMAGES, "networks": {}}
    for name in sys.argv[1:] or (FASTEST, COMES_ALONG, *filter(is_installed, PRETRAINED)):
        results["networks"][Path(name).name] = measured(name)
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"embedding-{kind}.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
