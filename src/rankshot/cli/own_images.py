"""One's own images, made ready as a network wants them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankshot.data import prepared
from rankshot.data.folder import SIZE
from rankshot.terminal import counting

USUAL = {"size": SIZE, "channels": 3, "invert": False}


def made_ready(name: str, root: str | None, images: Mapping[str, Any], whose: str) -> str:
    """What was prepared of a folder, by its own name: that stays when the folder changes, is spelt otherwise or is out of
    sight.

    images   what the network wants, as `models.pretrained.images_of` tells; empty: whatever is usual
    """
    wants = as_wanted(images)
    if all(USUAL[option] == value for option, value in wants.items()):
        wants = {}
    with counting(Path(name).name) as told:
        place = prepared(name, root, told=told, **wants)
    if wants:
        colours = "grey" if wants["channels"] == 1 else "in colour"
        ink = ", dark ink made bright" if wants["invert"] else ""
        print(f"images are made ready as {whose} wants them, {wants['size']}x{wants['size']} {colours}{ink}: {place}")
    return place.name


def as_wanted(images: Mapping[str, Any]) -> dict[str, Any]:
    """How to prepare images, from what a network tells of those it wants; nothing where it does not, or cannot be met."""
    shape = images.get("shape", ())
    if len(shape) != 3 or shape[1] != shape[2] or shape[0] not in (1, 3):
        return {}
    return {"size": shape[1], "channels": shape[0], "invert": bool(images.get("invert", False))}
