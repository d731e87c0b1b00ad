"""A taught classifier in a folder: settings and classes as JSON, examples as safetensors, its network beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from rankshot import __version__
from rankshot.files import whole_folder, write_whole
from rankshot.schema import read_json
from rankshot.tensors import read_tensors, write_tensors

from .embedder import Embedder

if TYPE_CHECKING:
    from .classifier import FewShotClassifier

CLASSIFIER, EXAMPLES, NETWORK = "classifier.json", "examples.safetensors", "network"
SETTINGS = {"rule", "reject", "threshold", "unknown"}
KINDS = {"U": str, "i": int, "u": int, "f": float, "b": bool}  # of labels, by numpy's letter


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
        content = json.dumps(about, indent=1)
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
    about, examples = read_json(place / CLASSIFIER), read_tensors(place / EXAMPLES)
    try:
        classes: NDArray[Any] = np.asarray(about["classes"], dtype=KINDS[about["labels"]])
        vectors = examples["vectors"].clone().numpy()  # in memory of torch's own: last bits depend on where rows begin
        labels = classes[examples["labels"].numpy()]
        names, settings = [str(each) for each in about["names"]], dict(about["settings"])
        if vectors.ndim != 2 or not len(vectors) == len(labels) == len(names):
            raise ValueError("its examples, labels and names are not as many")
        if not np.isfinite(vectors).all():
            raise ValueError("its examples are not finite")
        if classes.ndim != 1 or set(settings) != SETTINGS:
            raise ValueError("its classes or its settings are not what a classifier has")
        network = about["network"]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{place} is damaged: {error}") from None
    embedder = None if network is None else Embedder(place / NETWORK)
    if embedder is not None and embedder.fingerprint != network:
        raise ValueError(f"{place / NETWORK} is not the network that the examples were seen by")
    return {"settings": settings, "embedder": embedder, "vectors": vectors, "labels": labels, "names": names}
