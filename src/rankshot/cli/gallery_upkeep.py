"""`rankshot gallery list`, `duplicates` and `rebuild`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

import tyro

from rankshot.gallery import Embedder, Gallery, Unreadable, rebuild
from rankshot.limits import whole
from rankshot.terminal import say, tallying

from .messages import complain, metadata_of, report_failures
from .output import answers_to
from .parsing import Device, Files, Where

AT_ONCE = 1024
Format = Annotated[Literal["csv", "json"], tyro.conf.arg(help="Of the lines: csv, or json (an object a line).")]


@dataclass(frozen=True)
class List:
    """Which images are in a gallery: their ids and metadata, a line each. In csv the metadata are JSON."""

    gallery: Where
    filter: Annotated[tuple[str, ...], tyro.conf.arg(aliases=["--where"], help_behavior_hint="")] = ()
    """Metadata that an image must have, as NAME=VALUE each."""
    format: Format = "csv"
    limit: int | None = None
    """How many to list at most. None: all."""
    load: Files = ()

    def run(self) -> int:
        limit = None if self.limit is None else whole("limit", self.limit, 1, 2**53)
        with Gallery.open(self.gallery) as gallery, answers_to(None) as to:
            items = islice(gallery.items(metadata_of(self.filter) or None), limit)
            if self.format == "csv":
                to.csv([("id", "metadata")])
            while chunk := list(islice(items, AT_ONCE)):
                if self.format == "csv":
                    to.csv((item.id, json.dumps(item.metadata)) for item in chunk)
                else:
                    to.json(item._asdict() for item in chunk)
        return 0


@dataclass(frozen=True)
class Duplicates:
    """Pairs of images that are nearly the same to the network, the most similar first."""

    gallery: Where
    above: float = 0.98
    """How similar they are at least: a cosine."""
    format: Format = "csv"
    load: Files = ()

    def run(self) -> int:
        with Gallery.open(self.gallery) as gallery:
            pairs = gallery.duplicates(self.above)
        rows = [{**pair._asdict(), "similarity": round(pair.similarity, 4)} for pair in pairs]
        with answers_to(None) as to:
            if self.format == "json":
                to.json(rows)
            else:
                to.csv([("id", "other", "similarity"), *(row.values() for row in rows)])
        return 0


@dataclass(frozen=True)
class Rebuild:
    """Embed every image of a gallery anew, from its file, by another network.

    Ids, which must be the paths of the files, and metadata stay. The new gallery takes the place of the old one when
    everything is done, and not before. If files are gone or cannot be read, they are told, and nothing is replaced.
    """

    gallery: Where
    model: str
    """Network: a run folder, or weights by name, such as efficientnet-lite0, or hf:NAME for a model of Hugging Face."""
    to: str | None = None
    """Where to make the new gallery. None: in place of the old one, which must be in a folder."""
    skip_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Leave out images whose files are gone or cannot be read."""
    load: Files = ()
    device: Device = "auto"

    def run(self) -> int:
        embedder = Embedder(self.model, device=self.device)
        try:
            with tallying("images embedded") as tell:
                done = rebuild(self.gallery, embedder, self.to, skip_missing=self.skip_missing, tell=tell)
        except Unreadable as error:
            report_failures(error.failures)
            complain("nothing was replaced. Relative paths start from this folder; --skip-missing drops missing files")
            return 1
        report_failures(done.failures)
        left_out = f", {len(done.failures)} left out" if done.failures else ""
        say(f"{self.to or self.gallery}: {done.images} images, seen by {embedder.name}{left_out}")
        return 0
