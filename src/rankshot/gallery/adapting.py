"""A gallery made anew by a map of its vectors, learned from what its metadata tell. No image is embedded again."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankshot.files import check_new_folder, whole_folder

from .embedder import Embedder
from .faiss_store import folder_in
from .gallery import VECTORS_ALONE, Gallery, check_new, created, is_folder
from .kept_map import MAP, NETWORK, fingerprint_of, is_adapted, map_in
from .local import LocalStore
from .marks import RIGHT, WRONG, Pairs, pairs_in
from .store import Chunk, Metadata, Source, Store, Vectors

if TYPE_CHECKING:
    from rankshot.adaptation import RankingTransformer

AT_ONCE = 2**14


class Adaptation(NamedTuple):
    """What came of `adapt`.

    Attributes:
        images: of the gallery.
        labelled: how many of them have a class.
        classes: how many classes they have.
        marks: pairs of images that are marked as right or wrong.
        gone: marks of images that are there no more; they were left out.
        before: mean average precision of what was held out, by the vectors as they are; nan if there is too little for
            that.
        after: the same by the map.
        is_identity: no map ranks better, and there is no new gallery.
        transformer: what has learned.

    Examples:
        >>> import numpy as np
        >>> y = np.repeat(np.arange(6), 4)  # 6 classes of 4 rows
        >>> noise = 3 * np.random.default_rng(0).normal(size=(24, 2))
        >>> X = np.column_stack([np.cos(y), np.sin(y), noise])  # two dimensions tell the class, two tell nothing
        >>> from rankshot import Gallery, RankingTransformer
        >>> from rankshot.gallery import adapt
        >>> with Gallery("my.gallery", dimensions=4) as gallery:
        ...     _ = gallery.add(X, metadata=[{"kind": int(label)} for label in y])
        >>> done = adapt("my.gallery", "better.gallery", label="kind", transformer=RankingTransformer(max_iter=20))
        >>> done.images, done.classes, done.after > done.before
        (24, 6, True)
    """

    images: int
    labelled: int
    classes: int
    marks: int
    gone: int
    before: float
    after: float
    is_identity: bool
    transformer: RankingTransformer


def adapt(
    uri: str | Path,
    to: str | Path,
    *,
    label: str | None = None,
    right: str = RIGHT,
    wrong: str = WRONG,
    network_to: str | Path | None = None,
    transformer: RankingTransformer | None = None,
    embedder: str | Path | Embedder | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> Adaptation:
    """Learn a map from the classes and marks in a gallery's metadata, and make a new gallery of the mapped vectors.

    The original stays as it is: add and mark there, and adapt it again, which takes seconds. The new gallery has the same
    ids and metadata. A new folder is there whole or not at all. It takes images where the original does; where that was
    given vectors, it is given vectors of the same model, and maps them itself.

    Args:
        uri: of the gallery.
        to: where to make the new one, of any kind.
        label: name of the metadata that tell the class of an image; those without it have none.
        right: name of the metadata that hold what is right: see `Gallery.mark`.
        wrong: name of the metadata that hold what is wrong.
        network_to: new folder for the network with the map behind it, or for the map of vectors that were made elsewhere.
            For a gallery that is in no folder: one that is keeps it within.
        transformer: what is to learn, `RankingTransformer(random_state=0)` unless it is given.
        embedder: the network that the gallery was made with, where it has moved.
        tell: called with the number of images that are done.

    Returns:
        An `Adaptation`: what was learned from, and how well the map ranks what was held out.

    Raises:
        ValueError: if the gallery is adapted already, or its metadata hold too little to learn from.
        FileExistsError: if there is something at `to`.

    Examples:
        >>> import numpy as np
        >>> y = np.repeat(np.arange(6), 4)  # 6 classes of 4 rows
        >>> noise = 3 * np.random.default_rng(0).normal(size=(24, 2))
        >>> X = np.column_stack([np.cos(y), np.sin(y), noise])  # two dimensions tell the class, two tell nothing
        >>> from rankshot import Gallery, RankingTransformer
        >>> from rankshot.gallery import adapt
        >>> with Gallery("my.gallery", dimensions=4) as gallery:
        ...     _ = gallery.add(X, metadata=[{"kind": int(label)} for label in y])
        ...     sorted(hit.metadata["kind"] for hit in gallery.search(X[0], k=4))  # by noise as well
        [0, 0, 1, 5]
        >>> learner = RankingTransformer(max_iter=20, random_state=0)
        >>> done = adapt("my.gallery", "better.gallery", label="kind", transformer=learner)
        >>> with Gallery.open("better.gallery") as gallery:
        ...     sorted(hit.metadata["kind"] for hit in gallery.search(X[0], k=4))
        [0, 0, 0, 0]
    """
    from rankshot.adaptation import RankingTransformer  # needs scikit-learn

    uri, to = str(uri), str(to)
    _check_places(to, network_to)
    with Gallery.open(uri, embedder, device="cpu") as old:
        if is_adapted(old.store):
            raise ValueError(f"{uri} is adapted already: adapt the gallery that it was made of")
        seen_by = None if old.store.about["embedder"]["name"] is None else old.embedder  # where it is gone, complain now
        everything = _everything(old.store)
    classes, pairs = _classes(everything, label), pairs_in(everything.ids, everything.metadata, right, wrong)
    _check_lessons(uri, everything, label, classes, pairs)
    learner = transformer if transformer is not None else RankingTransformer(random_state=0)
    y = None if label is None else np.array([*classes, None], dtype=object)[:-1]
    learner.fit(everything.vectors, y, alike=pairs.alike or None, unlike=pairs.unlike or None)
    if not learner.is_identity_:
        _make(to, network_to, seen_by, learner, everything, tell)
    known = [each for each in classes if each is not None]
    marks = len(pairs.alike) + len(pairs.unlike)
    scores = float(learner.held_out_map_before_), float(learner.held_out_map_)
    return Adaptation(
        len(classes), len(known), len(set(known)), marks, pairs.gone, *scores, bool(learner.is_identity_), learner
    )


def _check_places(to: str, network_to: str | Path | None) -> None:
    """Before anything is learned."""
    check_new(to)
    if is_folder(to) and network_to is not None:
        raise ValueError(f"a gallery in a folder keeps its network within: leave network_to ({network_to}) out")
    if not is_folder(to) and network_to is None:
        raise ValueError(f"{to} is in no folder: name a new folder for its network, or its map, with network_to")
    if network_to is not None:
        check_new_folder(Path(network_to))


def _everything(store: Store) -> Chunk:
    ids: list[str] = []
    vectors: list[Vectors] = [np.zeros((0, store.dimensions), np.float32)]
    metadata: list[dict[str, Any]] = []
    sources: list[Source | None] = []
    for chunk in store.chunks():
        ids += chunk.ids
        vectors.append(chunk.vectors)
        metadata += chunk.metadata
        sources += chunk.sources
    return Chunk(ids, np.concatenate(vectors), metadata, sources)


def _classes(everything: Chunk, label: str | None) -> list[str | None]:
    """The class of every image, as a text: metadata may be of several kinds."""
    found: list[str | None] = []
    for id, note in zip(everything.ids, everything.metadata, strict=True):
        value = None if label is None else note.get(label)
        if isinstance(value, (list, dict)):
            raise ValueError(f"metadata {label!r} must be a text or a number, that of {id!r} is {str(value)[:60]}")
        found.append(None if value is None else f"{type(value).__name__} {value}")
    return found


def _check_lessons(uri: str, everything: Chunk, label: str | None, classes: Sequence[str | None], pairs: Pairs) -> None:
    """What there is to learn from, in the words of who has a gallery, not a matrix."""
    counts = Counter(each for each in classes if each is not None)
    if label is not None and not counts:
        raise ValueError(f"no image of {uri} has metadata {label!r}: {_names(everything.metadata)}")
    if pairs.alike:
        return
    if label is None and pairs.unlike:
        raise ValueError(f"the marks of {uri} only tell what is wrong: some must tell what is right")
    if label is None:
        raise ValueError(
            f"{uri} holds no marks of what is right and wrong, and no metadata that tell classes were named: "
            f"{_names(everything.metadata)}"
        )
    if len(counts) < 2 or max(counts.values()) < 2:
        raise ValueError(
            f"metadata {label!r} must tell two classes or more, and some class of two images or more: "
            f"{counts.total()} images of {uri} have it, of {len(counts)} classes"
        )


def _names(metadata: Sequence[Metadata]) -> str:
    names = sorted({name for note in metadata for name in note})
    shown = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
    return f"there are {shown}" if names else "there are no metadata at all"


def _make(
    to: str,
    network_to: str | Path | None,
    seen_by: Embedder | None,
    learner: RankingTransformer,
    everything: Chunk,
    tell: Callable[[int], None],
) -> None:
    """The new gallery, and what it keeps beside its vectors."""
    place = folder_in(to) / (MAP if seen_by is None else NETWORK) if network_to is None else Path(network_to).resolve()
    network = None
    if seen_by is None:
        folder = None if network_to is None else str(place)
        about = {"embedder": VECTORS_ALONE, "adapted": {"map": _fingerprint(learner), "folder": folder}}
    else:
        network = Embedder(learner.behind(seen_by.network), seen_by.preprocess, name=str(place))
        about = {"embedder": network.about, "adapted": {"map": None, "folder": None}}
    components = len(learner.components_)
    if network_to is None:
        with whole_folder(place.parent) as new_folder:
            with closing(LocalStore.create(new_folder, components, about)) as store:
                _fill(store, learner, everything, tell)
                store.settle()
            _keep(new_folder / place.name, network, learner)
    else:
        with whole_folder(place) as new_folder:
            _keep(new_folder, network, learner)
            with closing(created(to, components, about)) as elsewhere:
                _fill(elsewhere, learner, everything, tell)


def _fingerprint(learner: RankingTransformer) -> str:
    with tempfile.TemporaryDirectory(prefix="rankshot-map-") as folder:
        found = map_in(learner.save_pretrained(Path(folder) / MAP))
    assert found is not None
    return fingerprint_of(found)


def _keep(folder: Path, network: Embedder | None, learner: RankingTransformer) -> None:
    if network is None:
        learner.save_pretrained(folder)
        return
    network.save_pretrained(folder)
    if Embedder(folder, device="cpu").fingerprint != network.fingerprint:  # the gallery would refuse its own network
        raise ValueError(f"{type(network.network).__name__} is another network when it is saved and opened again")


def _fill(store: Store, learner: RankingTransformer, everything: Chunk, tell: Callable[[int], None]) -> None:
    for start in range(0, len(everything.ids), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        # In double precision, as `Gallery` maps what it is given.
        mapped = learner.transform(everything.vectors[part].astype(np.float64)).astype(np.float32)
        store.add(mapped, everything.ids[part], everything.metadata[part], everything.sources[part])
        tell(start + len(mapped))
