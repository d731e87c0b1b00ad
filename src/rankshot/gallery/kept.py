"""A taught classifier in a folder: settings and classes as JSON, examples as safetensors, its network beside them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from rankshot import __version__
from rankshot.files import check_no_link, whole_folder, write_whole
from rankshot.schema import Length, read_json
from rankshot.tensors import read_tensors, write_tensors

from .embedder import Embedder

if TYPE_CHECKING:
    from .classifier import FewShotClassifier

log = logging.getLogger(__name__)

CLASSIFIER, EXAMPLES, NETWORK = "classifier.json", "examples.safetensors", "network"
SETTINGS = {"rule", "reject", "threshold", "unknown"}
KINDS = {"U": str, "i": int, "u": int, "f": float, "b": bool}  # of labels, by numpy's letter
Label = str | int | float | bool


class About(TypedDict, total=False):
    """What classifier.json holds; `sha256` is of all the rest."""

    rankshot: str
    settings: Required[dict[str, Label | None]]
    labels: Required[Literal["U", "i", "u", "f", "b"]]
    classes: Required[Annotated[list[Label], Length(10**6)]]
    names: Required[list[str]]
    network: Required[Annotated[str, Length(64)] | None]
    sha256: str


def keep(classifier: FewShotClassifier, folder: str | Path) -> Path:
    """Into a new folder."""
    settings = {name: _plain(getattr(classifier, name)) for name in sorted(SETTINGS)}
    embedder = classifier._embedder()
    kind = classifier.classes_.dtype.kind
    if kind not in KINDS:
        raise ValueError(f"labels must be texts or numbers to be kept, got {classifier.classes_.dtype}")
    about = {
        "rankshot": __version__,
        "settings": settings,
        "labels": kind,
        "classes": classifier.classes_.tolist(),
        "names": list(classifier.support_names_),
        "network": None if embedder is None else embedder.fingerprint,
    }
    try:
        content = json.dumps({**about, "sha256": _checksum(about)}, indent=1)
    except TypeError as error:
        raise ValueError(f"`unknown` must be a text or a number to be kept: {error}") from None
    examples = {"vectors": torch.from_numpy(classifier.support_), "labels": torch.from_numpy(classifier.support_labels_)}
    with whole_folder(Path(folder)) as place:
        if embedder is not None:
            embedder.save_pretrained(place / NETWORK)
        write_tensors(place / EXAMPLES, examples, {})
        write_whole(place / CLASSIFIER, content + "\n")
    return Path(folder)


def _plain(value: Any) -> Any:
    """A number of numpy's as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def is_kept(folder: Path) -> bool:
    return (folder / CLASSIFIER).is_file()


def kept_in(folder: str | Path) -> dict[str, Any]:
    """What `keep` has written: settings for the constructor, and embedder, vectors, labels and names to remember."""
    place = Path(folder)
    if not is_kept(place):
        raise FileNotFoundError(f"{place} holds no classifier: there is no {CLASSIFIER} in it")
    about: About = read_json(place / CLASSIFIER, About)
    settings, network = dict(about["settings"]), about["network"]
    if settings.keys() != SETTINGS:
        raise ValueError(f"{place} is damaged: its settings should be {', '.join(sorted(SETTINGS))}")
    if (told := about.get("sha256")) is None:
        log.info("%s has no checksum: it was not written by this version of rankshot", place / CLASSIFIER)
    elif told != _checksum(about):
        raise ValueError(f"{place} is damaged: the checksum of {CLASSIFIER} is not that of what was written")
    vectors, labels = _examples(place, about)
    check_no_link(place / NETWORK)
    embedder = None if network is None else Embedder(place / NETWORK)
    if embedder is not None and embedder.fingerprint != network:
        raise ValueError(f"{place / NETWORK} is not the network that the examples were seen by")
    return {"settings": settings, "embedder": embedder, "vectors": vectors, "labels": labels, "names": about["names"]}


def _examples(place: Path, about: About) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Vectors (n, D), and the label of each."""
    kind: Any = KINDS[about["labels"]]
    if not all(type(each) is kind for each in about["classes"]):
        raise ValueError(f"{place} is damaged: its classes should all be of type {kind.__name__}")
    classes: NDArray[Any] = np.asarray(about["classes"], dtype=kind)
    examples = read_tensors(place / EXAMPLES)
    if examples.keys() != {"vectors", "labels"}:
        raise ValueError(f"{place / EXAMPLES} is damaged: it should hold vectors and labels")
    # In memory of torch's own: last bits depend on where rows begin.
    vectors, numbers = examples["vectors"].double().clone().numpy(), examples["labels"].long().numpy()
    if vectors.ndim != 2 or not vectors.shape[:1] == numbers.shape == (len(about["names"]),) or not len(vectors):
        raise ValueError(f"{place} is damaged: its examples, labels and names are not as many")
    if set(np.unique(numbers).tolist()) != set(range(len(classes))):
        raise ValueError(f"{place} is damaged: its labels are not those of its classes")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{place} is damaged: its examples are not finite")
    return vectors, classes[numbers]


def _checksum(about: Mapping[str, Any]) -> str:
    told = {name: value for name, value in about.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
