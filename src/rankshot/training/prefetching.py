"""Batches of images that do not lie on the device: gathered from memory, or a file mapped there, ahead of their time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from rankshot.gathering import part_of

AHEAD = 4  # batches
WORKERS = 4
Loaded = tuple[Tensor, Tensor, torch.cuda.Event | None]  # which images, the images, when they have arrived


class Prefetcher:
    """Which images a batch has, by its number, and these images on the device; the next ones are on their way meanwhile.

    Of several processes each gets its part of the images.

    Threads are enough: torch gathers without holding Python's lock. On a GPU they copy from pinned memory, in a stream of
    their own, beside the update that is being computed.

    Args:
        images: (n, C, H, W) uint8, on the CPU.
        draw: number of a batch -> (B,) which images, on the CPU.
        device: where to.
        end: there is no batch of this number.
    """

    def __init__(self, images: Tensor, draw: Callable[[int], Tensor], device: torch.device, end: int) -> None:
        self.images, self.draw, self.device, self.end = images, draw, device, end
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._workers = ThreadPoolExecutor(WORKERS, "prefetch")
        self._coming: dict[int, Future[Loaded]] = {}

    def __call__(self, number: int) -> tuple[Tensor, Tensor]:
        for each in range(number, min(number + AHEAD, self.end)):
            if each not in self._coming:
                self._coming[each] = self._workers.submit(self._load, self.draw(each))
        self._coming = {each: future for each, future in self._coming.items() if 0 <= each - number < AHEAD}
        return self._arrived(*self._coming.pop(number).result())

    def now(self, number: int) -> tuple[Tensor, Tensor]:
        """Without looking ahead: no other thread is at work when this returns, as a CUDA graph wants it."""
        return self._arrived(*self._load(self.draw(number)))

    def close(self) -> None:
        self._workers.shutdown(cancel_futures=True)

    def _load(self, indices: Tensor) -> Loaded:
        chosen = part_of(indices)
        gathered = torch.empty(len(chosen), *self.images.shape[1:], dtype=torch.uint8, pin_memory=self._stream is not None)
        torch.index_select(self.images, 0, chosen, out=gathered)
        if self._stream is None:
            return indices, gathered, None
        with torch.cuda.stream(self._stream):
            return indices, gathered.to(self.device, non_blocking=True), self._stream.record_event()

    def _arrived(self, indices: Tensor, images: Tensor, event: torch.cuda.Event | None) -> tuple[Tensor, Tensor]:
        if event is not None:
            now = torch.cuda.current_stream(self.device)
            now.wait_event(event)
            images.record_stream(now)  # their memory is not given away before this stream is done with it
        return indices, images
