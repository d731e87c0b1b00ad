"""`rankshot search`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rankshot.gallery import Gallery
from rankshot.gallery.hits_sheet import hits_sheet
from rankshot.gallery.store import Hit
from rankshot.terminal import json_line, say

from .messages import metadata_of
from .parsing import NO_DEFAULT, Device, Files, parsed


@dataclass(frozen=True)
class Options:
    """Find in a gallery what is most like an image, or like all of several."""

    queries: Annotated[tuple[Path, ...], tyro.conf.Positional, NO_DEFAULT]
    """One image, or several: what is like all of these."""
    gallery: str
    """Folder, NAME.db or http://host:19530/NAME of the gallery (see: rankshot gallery add)."""
    k: Annotated[int, tyro.conf.arg(aliases=["-k"])] = 10
    """How many to find."""
    where: Annotated[tuple[str, ...], NO_DEFAULT] = ()
    """Metadata that a hit must have, as NAME=VALUE each."""
    model: str | None = None
    """The network that the gallery was made with, where it has moved."""
    load: Files = ()
    device: Device = "auto"
    sheet: Path | None = None
    """Picture to write: the queries and what was found, such as out.png."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print an object a line instead of a table."""


def main(arguments: Sequence[str]) -> int:
    options = parsed(Options, arguments, "search")
    with Gallery.open(options.gallery, options.model, device=options.device) as gallery:
        hits = gallery.search(list(options.queries), options.k, metadata_of(options.where) or None)
    if hits:
        say(*(json_line(hit._asdict(), sys.stdout.encoding) if options.json else row(hit) for hit in hits))
    if options.sheet is not None:
        hits_sheet(options.queries, hits, options.sheet)
    return 0


def row(hit: Hit) -> str:
    return "  ".join([f"{hit.similarity:.4f}", hit.id, *([json.dumps(hit.metadata)] if hit.metadata else [])])
