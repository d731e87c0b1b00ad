"""Peak memory of a batch in micro-batches beside that of one of them: `python -m benchmarks.micro_batches` on a GPU.

4,096 images of 84x84 through ResNet-12 in float32, micro-batches of 256; forward, mAP-DLM and backward. Into
results/benchmarks/micro_batches.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from rankshot.hardware import circumstances
from rankshot.losses import RankingLoss
from rankshot.models.network import NETWORKS, build
from rankshot.training.micro_batches import backward_in_micro_batches

from .large_batches import milliseconds, peak_mib
from .places import FOLDER

SEED, IMAGES, MICRO_BATCH = 0, 4096, 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER / "micro_batches.json")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    preprocess = NETWORKS["resnet12"].about["preprocess"]
    network = build({"name": "resnet12"}, preprocess).cuda().train()
    images = torch.rand(IMAGES, *preprocess.shape, device="cuda")
    labels = torch.arange(IMAGES, device="cuda") % (IMAGES // 8)
    loss = RankingLoss()

    def one() -> None:
        loss(network(images[:MICRO_BATCH]), labels[:MICRO_BATCH] % 32).backward()

    def all_of_them() -> None:
        backward_in_micro_batches(network, images, lambda embeddings: loss(embeddings, labels), MICRO_BATCH)

    one()
    peaks = {"one": peak_mib(one), "all": peak_mib(all_of_them)}
    seconds = {"one": milliseconds(one, 2) / 1e3, "all": milliseconds(all_of_them, 1) / 1e3}
    ratio = peaks["all"] / peaks["one"]
    results = {"images": IMAGES, "micro_batch": MICRO_BATCH, "peak_mib": peaks, "ratio": ratio, "seconds": seconds}
    print(results)
    options.to.write_text(json.dumps({**circumstances(SEED), **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
