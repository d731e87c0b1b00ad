"""Find everything like this one: images under ids, searched by what a network sees in them."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from rankshot.files import check_new_folder, whole_folder
from rankshot.hardware import device_for
from rankshot.registry import Part
from rankshot.schema import Length, checked
from rankshot.vectors import unit_vectors

from .embedder import Embedded, Embedder
from .faiss_store import FaissStore, folder_in, is_faiss
from .filters import Wanted
from .format_1 import in_todays_format
from .kept_map import AdaptedBy, about_elsewhere, copy_kept, is_adapted, kept_within, map_of
from .local import LocalStore
from .marks import mark
from .milvus import MilvusStore, is_milvus
from .pictures import Failure
from .sources import has_changed, id_of, source_of
from .store import SCHEMES, STORES, Damaged, Filter, Hit, Metadata, Store, Vectors, check_ids, encoded

if TYPE_CHECKING:
    from rankshot.adaptation.fitted_map import FittedMap

VECTORS_ALONE = {"name": None, "fingerprint": None}


class Seen(TypedDict):
    """By which network the images were seen; None: the vectors were made elsewhere."""

    name: Annotated[str, Length(4096)] | None
    fingerprint: Annotated[str, Length(64)] | None


class About(TypedDict):
    """What a gallery tells about itself."""

    embedder: Seen
    adapted: NotRequired[AdaptedBy]


class Item(NamedTuple):
    """An image of a gallery.

    Attributes:
        id: of the image.
        metadata: of the image.

    Examples:
        >>> from rankshot import Gallery
        >>> gallery = Gallery(dimensions=2)
        >>> added = gallery.add([[1.0, 0.0], [0.0, 1.0]], ids=["right", "up"], metadata=[{"side": "x"}, {"side": "y"}])
        >>> list(gallery.items({"side": "y"}))
        [Item(id='up', metadata={'side': 'y'})]
    """

    id: str
    metadata: dict[str, Any]


class Duplicate(NamedTuple):
    """Two images that are nearly the same to the network.

    Attributes:
        id: of one.
        other: id of the other.
        similarity: their cosine.

    Examples:
        >>> from rankshot import Gallery
        >>> gallery = Gallery(dimensions=2)
        >>> added = gallery.add([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], ids=["right", "up", "far right"])
        >>> pair = gallery.duplicates(0.99)[0]
        >>> pair.id, pair.other, round(pair.similarity, 4)
        ('far right', 'right', 1.0)
    """

    id: str
    other: str
    similarity: float


class Added(NamedTuple):
    """What came of an addition: the ids that are in the gallery now, and the images that could not be read."""

    ids: list[str]
    failures: list[Failure]


class AddedFiles(NamedTuple):
    """What came of adding files.

    ids       of those that are new
    changed   of those that were there and have changed since: they were embedded anew
    there     how many were there already, as they are
    unknown   of how many of these nobody knows whether they have changed: an earlier version added them
    failures  files that could not be read
    """

    ids: list[str]
    changed: list[str]
    there: int
    unknown: int
    failures: list[Failure]


class Gallery:
    """Images under ids, to be found again: added, searched, deleted. What a call has acknowledged outlives the process.

    `Gallery(...)` makes a new one, `Gallery.open(...)` opens one that is there. `with` closes it.

    Args:
        path: where to make it: a new folder, searched exactly, or by FAISS with "faiss:FOLDER"; "NAME.db" or
            "http://host:19530/NAME" for Milvus. None: a temporary folder, which `save` copies.
        embedder: what makes vectors of images: a run folder, the name of shipped weights, or an `Embedder`. None:
            everything is given as vectors.
        dimensions: of the vectors, where there is no embedder.
        device: where the network computes, for an embedder that is a folder or a name: see `Embedder`.

    Raises:
        ValueError: if there is neither an embedder nor `dimensions`.
        FileExistsError: if there is something at `path`.

    Examples:
        >>> from rankshot import Gallery
        >>> gallery = Gallery(dimensions=2)
        >>> gallery.add([[1.0, 0.0], [0.0, 1.0]], ids=["right", "up"]).ids
        ['right', 'up']
        >>> for hit in gallery.search([0.6, 0.8], k=2):  # vectors are compared by cosine
        ...     print(f"{hit.id} {hit.similarity:.2f}")
        up 0.80
        right 0.60
        >>> gallery.delete("up")
        >>> len(gallery), "up" in gallery
        (1, False)
    """

    def __init__(
        self,
        path: str | Path | None = None,
        embedder: str | Path | Embedder | None = None,
        *,
        dimensions: int | None = None,
        device: str = "auto",
    ) -> None:
        made = _made(embedder, device)
        if made is None and (not isinstance(dimensions, int) or dimensions < 1):
            raise ValueError(f"without an embedder a gallery needs the dimensions of its vectors, got {dimensions!r}")
        folder: str | Path
        if path is None:
            folder = Path(tempfile.mkdtemp(prefix="rankshot-gallery-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        else:
            folder = path
        about = VECTORS_ALONE if made is None else made.about
        width = made.dimensions if made is not None else int(dimensions or 0)
        self._begin(created(str(folder), width, {"embedder": about}), made, device)

    @classmethod
    def open(
        cls,
        uri: str | Path,
        embedder: str | Path | Embedder | None = None,
        *,
        device: str = "auto",
        map_folder: str | Path | None = None,
    ) -> Gallery:
        """Open a gallery that is there. Its network is loaded by its name when it is first needed.

        Args:
            uri: its path, or place, as it was made with.
            embedder: its network, where that has moved; another one is refused.
            device: where it computes: see `Embedder`.
            map_folder: of an adapted gallery of vectors: its map, where that has moved.

        Returns:
            The gallery.

        Raises:
            FileNotFoundError: if there is no gallery.
            Damaged: if its files are not what was written.
            ValueError: if `embedder` is another network than it was made with.
        """
        device_for(device)  # complains now, and not at the first search
        gallery = cls.__new__(cls)
        gallery._begin(_opened(str(uri)), None, device, map_folder)
        try:
            checked(gallery.store.about, About, str(uri))
        except ValueError as error:
            gallery.close()
            raise Damaged(f"{error}: a gallery tells which network it was made with") from None
        if (made := _made(embedder, device)) is not None:
            gallery._embedder = gallery._the_same(made)
        return gallery

    def _begin(self, store: Store, embedder: Embedder | None, device: str, map_folder: str | Path | None = None) -> None:
        self.store = store
        self._device = device
        self._embedder = embedder
        self._map: FittedMap | None = None
        self._map_folder = map_folder
        self._marking = threading.Lock()

    def __len__(self) -> int:
        return len(self.store)

    def __contains__(self, id: object) -> bool:
        return id in self.store

    def __enter__(self) -> Gallery:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close it. What was added is on the disk already."""
        self.store.close()

    def add(
        self,
        images: Any,
        ids: Sequence[str] | None = None,
        metadata: Sequence[Metadata] | None = None,
        *,
        replace: bool = False,
    ) -> Added:
        """Add images, or vectors. Images that cannot be read are reported, and the others are added.

        Args:
            images: a list of paths, Pillow images, bytes or arrays; or vectors (n, D).
            ids: one each. None: the path, or the next number that is free.
            metadata: one dictionary each, of what JSON can hold. None: none, and what is replaced keeps its own.
            replace: ids that are there already get these images and metadata instead; else they are an error.

        Returns:
            `ids` that were added, and `failures`.

        Raises:
            ValueError: if an id is there already or given twice, numbers do not match, or vectors have other dimensions.
        """
        images = _listed(images)
        for what, given in (("ids", ids), ("metadata", metadata)):
            if given is not None and len(given) != len(images):
                raise ValueError(f"there must be as many {what} as images, {len(images)}, got {len(given)}")
        notes = [dict(note) for note in metadata] if metadata is not None else [{} for _ in range(len(images))]
        names = list(ids) if ids is not None else [id_of(image) for image in images]
        if replace and metadata is None:
            check_ids(names)
            known = self.store.sources([name for name in names if name is not None])
            notes = [self.store.metadata(name) if name is not None and name in known else {} for name in names]
        return self._added(images, names, notes, replace=replace)

    def add_files(
        self,
        paths: Iterable[str | Path],
        metadata: Metadata | None = None,
        *,
        embed: Callable[[Sequence[str | Path]], Iterable[Embedded]] | None = None,
    ) -> AddedFiles:
        """Add files that are not there yet, and embed again those that have changed since. Their ids are their paths.

        Args:
            paths: of the files.
            metadata: of all of these. None: what has changed keeps its own.
            embed: what makes vectors of them, in place of the gallery's own network: the same network elsewhere.

        Returns:
            `ids` of new files, ids of `changed` ones, the number that was `there` already, and `failures`.
        """
        encoded([metadata or {}])
        files = {str(id_of(path)): path for path in paths}
        known = self.store.sources(list(files))
        changed = [id for id, before in known.items() if before is not None and has_changed(files[id], before)]
        new = [id for id in files if id not in known]
        added = self._added([files[id] for id in new], new, [dict(metadata or {}) for _ in new], embed=embed)
        notes = [dict(metadata) if metadata is not None else self.store.metadata(id) for id in changed]
        again = self._added([files[id] for id in changed], changed, notes, replace=True, embed=embed)
        unknown = sum(before is None for before in known.values())
        return AddedFiles(added.ids, again.ids, len(known) - len(changed), unknown, added.failures + again.failures)

    def _added(
        self,
        images: Any,
        ids: Sequence[str | None],
        notes: Sequence[Metadata],
        *,
        replace: bool = False,
        embed: Callable[[Any], Iterable[Embedded]] | None = None,
    ) -> Added:
        vectors, sources = self._ready(images), None
        if vectors is not None:
            indices, failures = list(range(len(images))), []
        else:
            encoded(notes)  # complains now, and not when everything is embedded
            # First: what changes while it is embedded is noticed next time.
            sources = [source_of(image) for image in images]
            parts = list((embed or self.embedder.each)(images))
            indices = [index for part in parts for index in part.places]
            failures = [failure for part in parts for failure in part.failures]
            vectors = np.concatenate([part.vectors for part in parts] or [np.zeros((0, self.store.dimensions), np.float32)])
            sources = [sources[index] for index in indices]
        chosen, chosen_notes = [ids[index] for index in indices], [notes[index] for index in indices]
        return Added(self.store.add(vectors, chosen, chosen_notes, sources, replace=replace), failures)

    def items(self, where: Filter | Mapping[str, Any] | None = None) -> Iterator[Item]:
        """All images, by id and metadata; `where` as in `search`."""
        lets_through = _filter(where)
        for ids, _, metadata, _ in self.store.chunks():
            for id, note in zip(ids, metadata, strict=True):
                if lets_through is None or lets_through(note):
                    yield Item(id, note)

    def delete(self, ids: str | Sequence[str]) -> None:
        """Delete images by id: all of them or, if one is unknown, none.

        Raises:
            ValueError: if an id is unknown.
        """
        self.store.delete([ids] if isinstance(ids, str) else list(ids))

    def mark(self, id: str, right: str | Iterable[str] = (), wrong: str | Iterable[str] = ()) -> None:
        """Remember what a person says of a search for the image `id`: which ids were right and which were wrong.

        The marks are added to the metadata of `id`, {"right": [ids…], "wrong": [ids…]}. What is said last of two images
        counts. `adapt` learns from them. No image is embedded again.

        Raises:
            ValueError: if an id is unknown, or this gallery is an adapted one: mark in the one that it was made of.
        """
        if is_adapted(self.store):
            raise ValueError("this gallery is adapted: mark in the one that it was made of, and adapt that one again")
        with self._marking:  # of threads: each adds to what is there
            mark(self.store, id, right, wrong)

    def search(self, query: Any, k: int = 10, where: Filter | Mapping[str, Any] | None = None) -> list[Hit]:
        """The images most similar to a query, the most similar first.

        Args:
            query: an image or a vector; or a list of them, to find what is like all of these (their mean).
            k: how many, at most.
            where: metadata that a hit must have, {"colour": "red"} or {"colour": ["red", "blue"]}; or a function of the
                metadata.

        Returns:
            A list of `Hit`.

        Raises:
            ValueError: if there is no query, `k` is below 1, or a vector has other dimensions.
        """
        vectors = self._vectors_of(self._several(query))
        mean = torch.nn.functional.normalize(torch.from_numpy(vectors).mean(0, keepdim=True), dim=-1).numpy()
        return self._search(mean, k, where)[0]

    def search_each(self, queries: Any, k: int = 10, where: Filter | Mapping[str, Any] | None = None) -> list[list[Hit]]:
        """For every query the images most similar to it; arguments as those of `search`."""
        return self._search(self._vectors_of(list(queries)), k, where)

    def duplicates(self, similarity: float = 0.99) -> list[Duplicate]:
        """Pairs of images whose cosine is at least `similarity`, the most similar first.

        Raises:
            ValueError: if `similarity` is not from -1 to 1.
        """
        if not -1 <= similarity <= 1:
            raise ValueError(f"similarity is a cosine, from -1 to 1, got {similarity}")
        pairs: list[Duplicate] = []
        for ids, vectors in self._blocks():
            k, rows = 4, np.arange(len(ids))
            while len(rows):  # those whose last hit is still near may have more of them
                hits = self.store.search(vectors[rows], k, exactly=True)
                open_ended = [len(row_hits) == k and row_hits[-1].similarity >= similarity for row_hits in hits]
                for row, row_hits, has_more in zip(rows, hits, open_ended, strict=True):
                    near = [] if has_more else [hit for hit in row_hits if hit.similarity >= similarity]
                    pairs += [Duplicate(ids[row], hit.id, hit.similarity) for hit in near if ids[row] < hit.id]
                k, rows = 8 * k, rows[open_ended]
        return sorted(pairs, key=lambda pair: -pair.similarity)

    def save(self, path: str | Path) -> None:
        """Copy the gallery, as it is now, to a new place of any kind. A folder is there whole or not at all."""
        if not is_folder(str(path)):
            self._copy_into(created(str(path), self.store.dimensions, about_elsewhere(self.store)))
            return
        with whole_folder(folder_in(str(path))) as new_folder:
            self._copy_into(LocalStore.create(new_folder, self.store.dimensions, self.store.about))
            copy_kept(self.store, new_folder)

    def _copy_into(self, target: Store) -> None:
        try:
            for ids, vectors, metadata, sources in self.store.chunks():
                target.add(vectors, ids, metadata, sources)
            if isinstance(target, LocalStore):
                target.settle()
        finally:
            target.close()

    @property
    def embedder(self) -> Embedder:
        """The network that its vectors come from.

        Raises:
            ValueError: if its vectors were made elsewhere.
            FileNotFoundError: if the network is gone: open the gallery with `embedder`.
        """
        if self._embedder is None:
            name = self.store.about["embedder"]["name"]
            if name is None:
                raise ValueError("this gallery holds vectors that were made elsewhere: give vectors, not images")
            try:
                self._embedder = self._the_same(Embedder(kept_within(self.store) or name, device=self._device))
            except FileNotFoundError as error:
                raise FileNotFoundError(
                    f"{error}: this gallery was made with {name}; where it has moved, open with it"
                ) from None
        return self._embedder

    def _the_same(self, embedder: Embedder) -> Embedder:
        about = self.store.about["embedder"]
        if embedder.fingerprint != about["fingerprint"] or embedder.dimensions != self.store.dimensions:
            made_with = about["name"] or "vectors that were made elsewhere"
            raise ValueError(
                f"this gallery was made with {made_with} ({about['fingerprint']}), whose vectors are not those of "
                f"{embedder.name} ({embedder.fingerprint}): `rankshot gallery rebuild --model` embeds its images anew"
            )
        return embedder

    def _search(self, vectors: Vectors, k: int, where: Filter | Mapping[str, Any] | None) -> list[list[Hit]]:
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k must be a whole number of 1 or more, got {k!r}")
        return self.store.search(vectors, int(k), _filter(where))

    def _several(self, query: Any) -> list[Any]:
        """One image or vector, or some of them."""
        if isinstance(query, (list, tuple)):
            return [query] if _is_vector(query) else list(query)
        of_vectors = getattr(query, "ndim", 0) == 2 and query.shape[1] == self._width
        return list(query) if of_vectors or getattr(query, "ndim", 0) == 4 else [query]

    def _vectors_of(self, given: list[Any]) -> Vectors:
        if not given:
            raise ValueError("there is nothing to look for")
        ready = self._ready(given)
        return self.embedder(given) if ready is None else ready

    def _ready(self, given: list[Any] | NDArray[Any]) -> Vectors | None:
        """Vectors of length 1, where these are vectors; None: they are images."""
        if isinstance(given, np.ndarray):
            vectors = given.astype(np.float64)
        elif all(_is_vector(item) for item in given):
            for vector in given:
                if len(vector) != self._width:
                    raise ValueError(f"vectors must have {self._width} dimensions, got {len(vector)}")
            try:
                rows = [np.asarray(vector, np.float64) for vector in given]
            except OverflowError as error:
                raise ValueError(f"vectors must be of numbers that a float can hold: {error}") from None
            vectors = np.array(rows).reshape(len(given), self._width)
        else:
            return None
        if vectors.shape[1] != self._width:
            raise ValueError(f"vectors must have {self._width} dimensions, got {vectors.shape[1]}")
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(1))[0])
            raise ValueError(f"vectors must be finite, number {row} is not")
        largest = np.abs(vectors).max(1, keepdims=True, initial=0.0)  # first: the shortest count too
        units: NDArray[np.float64] = unit_vectors(torch.from_numpy(vectors / np.where(largest > 0, largest, 1))).numpy()
        return (units if self._map is None else self._map(units)).astype(np.float32)

    @property
    def _width(self) -> int:
        """Of vectors that are given: in an adapted gallery those of the model that the map was learned for."""
        if self._map is None:
            self._map = map_of(self.store, self._map_folder)
        return self.store.dimensions if self._map is None else self._map.dimensions

    def _blocks(self) -> Iterator[tuple[list[str], Vectors]]:
        for ids, vectors, *_ in self.store.chunks():
            for start in range(0, len(ids), 1024):
                yield ids[start : start + 1024], vectors[start : start + 1024]


def _made(embedder: str | Path | Embedder | None, device: str) -> Embedder | None:
    return embedder if embedder is None or isinstance(embedder, Embedder) else Embedder(embedder, device=device)


def _listed(images: Any) -> Any:
    """A list; a matrix of numbers stays one."""
    is_matrix = isinstance(images, np.ndarray) and images.ndim == 2 and images.dtype.kind == "f"
    return images if is_matrix else list(images)


def _is_vector(given: Any) -> bool:
    """One-dimensional numbers."""
    if isinstance(given, (list, tuple)):
        return bool(given) and all(isinstance(number, (int, float)) for number in given)
    return getattr(given, "ndim", None) == 1


def created(uri: str, dimensions: int, about: Mapping[str, Any]) -> Store:
    if own := _own_store(uri):
        made: Store = own.make.create(uri.partition(":")[2], dimensions, about)  # type: ignore[attr-defined]
        return made
    if is_milvus(uri):
        return MilvusStore(uri, about, dimensions)
    kind = FaissStore if is_faiss(uri) else LocalStore
    return kind.create(folder_in(uri), dimensions, about)


def _opened(uri: str) -> Store:
    if own := _own_store(uri):
        opened: Store = own.make(uri.partition(":")[2])
        return opened
    if is_milvus(uri):
        return MilvusStore(uri)
    kind = FaissStore if is_faiss(uri) else LocalStore
    return kind(in_todays_format(folder_in(uri)))


def is_folder(uri: str) -> bool:
    """Whether it is kept in a folder, by rankshot itself."""
    return not _own_store(uri) and not is_milvus(uri)


def check_new(uri: str) -> None:
    """Complain now about a place that a new gallery cannot be made in."""
    if is_folder(uri):
        check_new_folder(folder_in(uri))
        return
    try:
        _opened(uri).close()
    except FileNotFoundError:
        return
    raise FileExistsError(f"{uri} exists already: name a new place")


def _own_store(uri: str) -> Part | None:
    """The registered store of NAME:PLACE; None: it is a folder, or of a kind that comes with rankshot."""
    name, colon, _ = uri.partition(":")
    if colon and name in STORES:
        return STORES[name]
    is_path = len(name) < 2 or "/" in name or "\\" in name  # one letter is a drive of Windows
    if not colon or is_path or name.lower() in SCHEMES or Path(uri).exists():
        return None
    known = ", ".join(map(repr, ("faiss", *STORES)))
    raise ValueError(
        f"there is no gallery store {name!r}, only {known}: one of your own comes with --load FILE, and a local folder of "
        f"this name is written ./{uri}"
    )


def _filter(where: Filter | Mapping[str, Any] | None) -> Filter | None:
    return Wanted(where) if isinstance(where, Mapping) else where
