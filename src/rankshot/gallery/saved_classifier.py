"""A taught classifier in a folder: settings and classes as JSON, examples as safetensors, its network beside them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Required, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankshot.files import check_no_link, whole_folder, write_whole
from rankshot.models.pretrained import from_pretrained
from rankshot.schema import Length, read_json
from rankshot.tensors import read_tensors, write_tensors
from rankshot.version import __version__

from .embedder import Embedder
from .one_shot import known_beside

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


class Saved(NamedTuple):
    """What is saved of a classifier: enough to make one that answers the same.

    settings  of its constructor, but for the embedder
    vectors   (n, D) float64, the examples, of length 1
    labels    (n,) of theirs, and names
    """

    settings: dict[str, Any]
    embedder: Embedder | None
    vectors: NDArray[np.float64]
    labels: NDArray[Any]
    names: list[str]


def save(saved: Saved, folder: str | Path) -> Path:
    """Into a new folder."""
    classes, numbers = np.unique(saved.labels, return_inverse=True)
    kind = classes.dtype.kind
    if kind not in KINDS:
        raise ValueError(f"labels must be texts or numbers to be saved, got {classes.dtype}")
    description = {
        "rankshot": __version__,
        "settings": {name: _plain(value) for name, value in sorted(saved.settings.items())},
        "labels": kind,
        "classes": classes.tolist(),
        "names": list(saved.names),
        "network": None if saved.embedder is None else saved.embedder.fingerprint,
    }
    try:
        content = json.dumps({**description, "sha256": _checksum(description)}, indent=1)
    except TypeError as error:
        raise ValueError(f"`unknown` must be a text or a number to be saved: {error}") from None
    examples = {"vectors": torch.from_numpy(saved.vectors), "labels": torch.from_numpy(numbers.astype(np.int64))}
    with whole_folder(Path(folder)) as new_folder:
        if saved.embedder is not None:
            saved.embedder.save_pretrained(new_folder / NETWORK)
        write_tensors(new_folder / EXAMPLES, examples, {})
        write_whole(new_folder / CLASSIFIER, content + "\n")
    return Path(folder)


def _plain(value: Any) -> Any:
    """A number of numpy's as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def is_saved(folder: Path) -> bool:
    return (folder / CLASSIFIER).is_file()


def opened(folder: str | Path, network: nn.Module | None = None, device: str = "auto") -> Saved:
    """What `save` has written; with `network`, one of one's own that its weights are for; see `Embedder` for `device`."""
    path = Path(folder)
    if not is_saved(path):
        raise FileNotFoundError(f"{path} holds no classifier: there is no {CLASSIFIER} in it")
    description: About = read_json(path / CLASSIFIER, About)
    settings, fingerprint = dict(description["settings"]), description["network"]
    if settings.keys() != SETTINGS:
        raise ValueError(f"{path} is damaged: its settings must be {', '.join(sorted(SETTINGS))}")
    if (recorded := description.get("sha256")) is None:
        log.info("%s has no checksum: it was not written by this version of rankshot", path / CLASSIFIER)
    elif recorded != _checksum(description):
        raise ValueError(f"{path} is damaged: the checksum of {CLASSIFIER} is not that of what was written")
    vectors, labels = _examples(path, description)
    check_no_link(path / NETWORK)
    embedder = None
    if fingerprint is not None:
        made = path / NETWORK if network is None else from_pretrained(path / NETWORK, network)
        embedder = Embedder(made, device=device, name=path.name)
        if network is not None:  # a network of one's own does not know what lies beside its weights
            embedder.one_shot, embedder.class_means = known_beside(path / NETWORK)
    if embedder is not None and embedder.fingerprint != fingerprint:
        raise ValueError(f"{path / NETWORK} is not the network that the examples were seen by")
    if embedder is not None and embedder.dimensions != vectors.shape[1]:
        raise ValueError(f"{path} is damaged: its examples are not of the network's {embedder.dimensions} dimensions")
    return Saved(settings, embedder, vectors, labels, description["names"])


def _examples(folder: Path, description: About) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Vectors (n, D), and the label of each."""
    kind: Any = KINDS[description["labels"]]
    if not all(type(label) is kind for label in description["classes"]):
        raise ValueError(f"{folder} is damaged: its classes should all be of type {kind.__name__}")
    classes: NDArray[Any] = np.asarray(description["classes"], dtype=kind)
    examples = read_tensors(folder / EXAMPLES)
    if examples.keys() != {"vectors", "labels"}:
        raise ValueError(f"{folder / EXAMPLES} is damaged: it should hold vectors and labels")
    # In memory of torch's own: last bits depend on where rows begin.
    vectors, numbers = examples["vectors"].double().clone().numpy(), examples["labels"].long().numpy()
    if vectors.ndim != 2 or not vectors.shape[:1] == numbers.shape == (len(description["names"]),) or not len(vectors):
        raise ValueError(f"{folder} is damaged: its examples, labels and names are not as many")
    if set(np.unique(numbers).tolist()) != set(range(len(classes))):
        raise ValueError(f"{folder} is damaged: its labels are not those of its classes")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{folder} is damaged: its examples are not finite")
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3):
        raise ValueError(f"{folder} is damaged: its examples are not of length 1")
    return vectors, classes[numbers]


def _checksum(description: Mapping[str, Any]) -> str:
    content = {name: value for name, value in description.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
