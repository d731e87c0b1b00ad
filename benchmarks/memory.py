"""One large batch in a process of its own: prints seconds and peak bytes above the inputs."""

from __future__ import annotations

import sys
import time

from rankshot.losses import RankingLoss

from .batches import batch
from .measure import peak_bytes


def main(size: int, regime: str, seed: int) -> None:
    loss = RankingLoss.paper()

    def forward_and_backward(size: int) -> float:
        embeddings, labels = batch(size, regime, seed)
        embeddings.requires_grad_()
        start = time.perf_counter()
        loss(embeddings, labels).backward()
        assert embeddings.grad is not None
        assert embeddings.grad.isfinite().all()
        return time.perf_counter() - start

    forward_and_backward(128)  # what torch loads once and keeps
    seconds = 0.0

    def run() -> None:
        nonlocal seconds
        seconds = forward_and_backward(size)

    peak = peak_bytes(run)
    print(seconds, peak)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
