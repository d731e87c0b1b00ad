"""Files embedded by several processes: the first one has the gallery, the others lend it their networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from rankshot.gathering import failing_together, gathered, is_shared, rank, told_by_all, told_by_first, world_size

from .embedder import Embedded, Embedder
from .gallery import Gallery
from .pictures import Failure

Embed = Callable[[Sequence[str | Path]], Iterable[Embedded]]


@contextmanager
def helped_by_others(gallery: Gallery) -> Iterator[Embed | None]:
    """In the first process: what embeds files together with the others, which are in `help_first` meanwhile."""
    if not is_shared():
        yield None
        return
    embedder = gallery.embedder
    told_by_first([str(embedder.folder), embedder.fingerprint])
    with failing_together():
        pass  # the others are loading it
    are_waiting = True  # for files, or for the end

    def embed(paths: Sequence[str | Path]) -> list[Embedded]:
        nonlocal are_waiting
        are_waiting = False
        found = _embedded(embedder, told_by_first([str(path) for path in paths]))
        are_waiting = True
        return [found]

    try:
        yield embed
    except Exception:
        if are_waiting:
            told_by_first(None)
        raise
    told_by_first(None)


def help_first(device: str) -> None:
    """In the other processes: embed a part of what the first one has, until it has no more."""
    name, fingerprint = told_by_first(None)
    with failing_together():
        embedder = Embedder(name, device=device)
        if embedder.fingerprint != fingerprint:
            raise ValueError(f"{name} is another network here than in process 0")
    while (paths := told_by_first(None)) is not None:
        _embedded(embedder, paths)


def _embedded(embedder: Embedder, paths: list[str]) -> Embedded:
    """All of them, on every process."""
    cuts = np.linspace(0, len(paths), world_size() + 1).round().astype(int).tolist()
    first = cuts[rank()]
    with failing_together():
        parts = list(embedder.each([Path(path) for path in paths[first : cuts[rank() + 1]]]))
    vectors = np.concatenate([np.zeros((0, embedder.dimensions), np.float32), *(part.vectors for part in parts)])
    places = [first + place for part in parts for place in part.places]
    found = told_by_all([places, [failure for part in parts for failure in part.failures]])
    everything = gathered(torch.from_numpy(vectors), [len(there) for there, _ in found])
    failures = [Failure(*failure) for _, failed in found for failure in failed]
    return Embedded([place for there, _ in found for place in there], everything.numpy(), failures)
