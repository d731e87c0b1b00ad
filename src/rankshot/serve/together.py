"""Requests that come together are embedded together: many small ones cost little more than one large one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.data.decoding import Undecodable
from rankshot.gallery.embedder import Embedder
from rankshot.gallery.pictures import pixels_of

from .turns import Turns
from .workspace import Refused, Vector

MOST_AT_ONCE, DECODING = 256, 4  # pictures that are embedded; that are decoded, which takes memory
IN_ONE_TURN = 8  # that a thread decodes before others may: a turn for each would take as long as a small picture
THREADS = 64


class Waiting(NamedTuple):
    """A picture, made ready, and where its vector is waited for."""

    pixels: NDArray[np.uint8]
    vector: Future[Vector]


class Together:
    """Embeds for many threads at once, by one of its own. What is no picture is told by an `Undecodable`, in its place."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.batches: list[int] = []  # how many pictures each of the last ones had
        self._turn, self._is_closed = threading.Lock(), False
        self.in_turn = Turns(THREADS)  # for what embeds
        self._decoding = threading.BoundedSemaphore(DECODING)
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="embedding", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """When all that waits has its answer; who comes later is told."""
        with self._turn:
            self._is_closed = True
            self._queue.put(None)
        self._thread.join()

    def __call__(self, pictures: Sequence[bytes]) -> list[Vector | Undecodable]:
        """For each the unit vector, or why there is none. The caller's thread decodes: all of them do so side by side."""
        answers: list[Future[Vector] | Undecodable] = []
        for start in range(0, len(pictures), IN_ONE_TURN):
            with self._decoding:
                some = [self._made_ready(picture) for picture in pictures[start : start + IN_ONE_TURN]]
            with self._turn:
                if self._is_closed:
                    raise Refused("the server is being stopped")
                for each in some:
                    if isinstance(each, Waiting):
                        self._queue.put(each)
            answers += [each.vector if isinstance(each, Waiting) else each for each in some]
        return [each if isinstance(each, Undecodable) else each.result() for each in answers]

    def _made_ready(self, picture: bytes) -> Waiting | Undecodable:
        try:
            return Waiting(pixels_of(picture, self.embedder.preprocess), Future())
        except Undecodable as error:
            return error

    def _work(self) -> None:
        is_open = True
        while is_open:
            some, is_open = self._next()
            if not some:
                continue
            self.batches = [*self.batches[-99:], len(some)]
            try:
                vectors = self.embedder([each.pixels for each in some])
            except Exception as error:  # whoever asked is told; the next ones may have better luck
                for each in some:
                    each.vector.set_exception(error)
            else:
                for each, vector in zip(some, vectors, strict=True):
                    each.vector.set_result(vector)

    def _next(self) -> tuple[list[Waiting], bool]:
        """All that wait, or the first that comes; and whether more may come."""
        some: list[Waiting] = []
        each = self._queue.get()
        while each is not None:
            some.append(each)
            if len(some) == MOST_AT_ONCE:
                break
            try:
                each = self._queue.get_nowait()
            except queue.Empty:
                break
        return some, each is not None
