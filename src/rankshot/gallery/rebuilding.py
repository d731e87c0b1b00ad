"""All images of a gallery embedded anew, by another network, under the ids and with the metadata that they have."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rankshot.files import locked, whole_folder

from .embedder import Embedder
from .faiss_store import folder_in
from .gallery import Gallery, Item, check_new, is_folder
from .local import LocalStore
from .pictures import Failure, Unreadable
from .store import Store

AT_ONCE = 1024
GONE = "No such file or directory"


class Rebuilt(NamedTuple):
    """What came of `rebuild`.

    Attributes:
        images: how many the gallery has now.
        failures: images that were left out, since their files could not be read.

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> from PIL import Image
        >>> import rankshot
        >>> Image.new("L", (8, 8), 100).save("grey.png")
        >>> embedder = rankshot.Embedder(torch.nn.Flatten(), rankshot.Preprocess(1, 2, 2))
        >>> with rankshot.Gallery("my.gallery", embedder) as gallery:
        ...     _ = gallery.add(["grey.png"])
        >>> Path("grey.png").unlink()
        >>> rebuilt = rankshot.gallery.rebuild("my.gallery", embedder, skip_missing=True)
        >>> rebuilt.images, rebuilt.failures[0].why
        (0, 'No such file or directory')
    """

    images: int
    failures: list[Failure]


def rebuild(
    uri: str,
    embedder: str | Path | Embedder,
    to: str | None = None,
    *,
    skip_missing: bool = False,
    tell: Callable[[int], None] = lambda done: None,
) -> Rebuilt:
    """Embed every image of a gallery anew, by another network, from its file, which is found by the image's id.

    Ids and metadata stay. It is done whole or not at all.

    Args:
        uri: of the gallery.
        embedder: the network: a run folder, the name of shipped weights, or an `Embedder`.
        to: where to make a new gallery, of any kind. None: in the place of the old one, which must be in a folder.
        skip_missing: leave out images whose files are gone or cannot be read; else they are an error.
        tell: called with the number of images that are done.

    Returns:
        How many images there are now, and which were left out.

    Raises:
        Unreadable: if files are gone or cannot be read, and `skip_missing` is not set.
        ValueError: if the gallery is in no folder and `to` is None.

    Examples:
        >>> import torch
        >>> from PIL import Image
        >>> import rankshot
        >>> Image.new("L", (8, 8), 100).save("grey.png")
        >>> small = rankshot.Embedder(torch.nn.Flatten(), rankshot.Preprocess(1, 2, 2))
        >>> with rankshot.Gallery("my.gallery", small) as gallery:
        ...     _ = gallery.add(["grey.png"])
        ...     gallery.store.dimensions
        4
        >>> large = rankshot.Embedder(torch.nn.Flatten(), rankshot.Preprocess(1, 4, 4))
        >>> rankshot.gallery.rebuild("my.gallery", large)
        Rebuilt(images=1, failures=[])
        >>> with rankshot.Gallery.open("my.gallery", large) as gallery:
        ...     gallery.store.dimensions
        16
    """
    if to is not None:
        check_new(to)
    embedder = embedder if isinstance(embedder, Embedder) else Embedder(embedder)
    with Gallery.open(uri) as old, _workplace(uri, old.store, to) as folder:
        since = old.store.change if isinstance(old.store, LocalStore) else 0
        items = list(old.items())
        gone = [Failure(item.id, GONE) for item in items if not os.path.exists(item.id)]
        if gone and not skip_missing:  # before hours of work
            raise Unreadable(gone, len(items))
        with Gallery(folder, embedder) as new:
            failures = _embedded(new, items, tell)
            if failures and not skip_missing:
                raise Unreadable(failures, len(items))
            count = len(new)
            if to is not None and not is_folder(to):
                new.save(to)
            elif isinstance(new.store, LocalStore):
                new.store.settle()
                if to is None and isinstance(old.store, LocalStore):
                    old.store.become(new.store, since)
    return Rebuilt(count, failures)


def _embedded(new: Gallery, items: list[Item], tell: Callable[[int], None]) -> list[Failure]:
    failures = []
    for start in range(0, len(items), AT_ONCE):
        chunk = items[start : start + AT_ONCE]
        ids, notes = [item.id for item in chunk], [item.metadata for item in chunk]
        failures += new.add([Path(id) for id in ids], ids, notes).failures
        tell(start + len(chunk))
    return failures


@contextmanager
def _workplace(uri: str, store: Store, to: str | None) -> Iterator[Path]:
    """An empty folder to work in: that of the new gallery; or one that is taken away again, within the old gallery where
    that is to be replaced."""
    if to is not None and is_folder(to):
        with whole_folder(folder_in(to)) as new_folder:
            yield new_folder
        return
    if to is not None:
        with tempfile.TemporaryDirectory(prefix="rankshot-gallery-") as elsewhere:
            yield Path(elsewhere) / "new"
        return
    if not isinstance(store, LocalStore):
        raise ValueError(f"{uri} is in no folder, and cannot be replaced as a whole: name a new place with --to")
    place = folder_in(uri)
    is_copy = place.exists() and not place.samefile(store.folder)  # of one of the first format that is read-only
    if is_copy or not store.is_writable:
        raise PermissionError(f"{uri} is read-only: name a new place with --to")
    with locked(store.folder) as is_ours:
        if not is_ours:
            raise FileExistsError(f"{uri} is being rebuilt by another process")
        for left in store.folder.glob(".making-*"):  # of one that was killed
            shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=".making-", dir=store.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
