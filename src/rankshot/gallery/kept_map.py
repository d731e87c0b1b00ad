"""What an adapted gallery keeps beside its vectors: the map, or the network that has the map behind it."""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from rankshot.files import check_no_link, read_whole, whole_folder, write_whole
from rankshot.models.saving import MOST_WEIGHTS
from rankshot.schema import Length

from .local import LocalStore
from .store import Store

if TYPE_CHECKING:
    from rankshot.adaptation.fitted_map import FittedMap

NETWORK, MAP = "network", "map"  # folders within that of the gallery


class AdaptedBy(TypedDict):
    """How the vectors of an adapted gallery were made of others.

    map     fingerprint of the map that given vectors go through first; None: the network has it
    folder  where the map is; None: within the gallery
    """

    map: Annotated[str, Length(64)] | None
    folder: Annotated[str, Length(4096)] | None


def is_adapted(store: Store) -> bool:
    return "adapted" in store.about


def kept_within(store: Store) -> Path | None:
    """The folder of the network, or of the map, where the gallery has it within its own."""
    if not is_adapted(store) or not isinstance(store, LocalStore):
        return None
    folder = store.folder / (NETWORK if store.about["adapted"]["map"] is None else MAP)
    check_no_link(folder)
    return folder if folder.is_dir() else None


def copy_kept(store: Store, to: Path) -> None:
    """Into the folder of another gallery."""
    if (folder := kept_within(store)) is not None:
        with whole_folder(to / folder.name) as new_folder:
            for file in sorted(folder.iterdir()):
                write_whole(new_folder / file.name, read_whole(file, MOST_WEIGHTS))


def about_elsewhere(store: Store) -> dict[str, Any]:
    """What a copy that is in no folder tells about itself: what is kept stays where it is."""
    about = copy.deepcopy(store.about)
    if (folder := kept_within(store)) is not None:
        part, name = ("embedder", "name") if folder.name == NETWORK else ("adapted", "folder")
        about[part][name] = str(folder.resolve())
    return about


def map_of(store: Store, folder: str | Path | None) -> FittedMap | None:
    """What given vectors go through first, where there is such a map.

    folder   where it is; None: where the gallery tells
    """
    if not is_adapted(store) or store.about["adapted"]["map"] is None:
        return None
    named = folder or kept_within(store) or store.about["adapted"]["folder"]
    place = Path(named or (store.folder / MAP if isinstance(store, LocalStore) else MAP))
    found = None if named is None else map_in(place)
    if found is None:
        raise FileNotFoundError(f"the map of this adapted gallery is not in {place}: where it has moved, give map_folder=")
    if fingerprint_of(found) != store.about["adapted"]["map"] or found.components != store.dimensions:
        raise ValueError(f"{place} holds another map than the one that this gallery was adapted by")
    return found


def map_in(folder: Path) -> FittedMap | None:
    """What `RankingTransformer.save_pretrained` has written."""
    from rankshot.adaptation.saved_transformer import is_saved, opened  # needs scikit-learn

    return opened(folder).map if is_saved(folder) else None


def fingerprint_of(found: FittedMap) -> str:
    digest = hashlib.sha256()
    for name in ("offset", "weight", "inner", "bias", "outer"):
        array = getattr(found, name)
        if array is not None:
            digest.update(f"{name} {array.shape}".encode() + array.astype("<f8").tobytes())
    return digest.hexdigest()[:32]
