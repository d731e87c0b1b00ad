"""`rankshot gallery mark` and `adapt`."""

from __future__ import annotations

import json
import math
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rankshot.gallery import Adaptation, Gallery, adapt
from rankshot.limits import whole
from rankshot.terminal import say, tallying

from .messages import complain
from .parsing import NO_DEFAULT, Files, Where


@dataclass(frozen=True)
class Mark:
    """Say of what a search has found what was right and what was wrong. `adapt` learns from it. What is said last counts.

    It is kept in the metadata of the image that was looked for.
    """

    gallery: Where
    id: Annotated[str, tyro.conf.Positional]
    """Of the image that was looked for, in the gallery; also as `rankshot search --json` tells it."""
    right: Annotated[tuple[str, ...], NO_DEFAULT] = ()
    """Ids of what is like it."""
    wrong: Annotated[tuple[str, ...], NO_DEFAULT] = ()
    """Ids of what is not like it."""
    load: Files = ()

    def run(self) -> int:
        with Gallery.open(self.gallery) as gallery:
            id, *others = (as_it_is_kept(gallery, name) for name in (self.id, *self.right, *self.wrong))
            right, wrong = others[: len(self.right)], others[len(self.right) :]
            gallery.mark(id, right, wrong)
        say(f"{self.gallery}: of {id}, {len(set(right))} marked as right and {len(set(wrong))} as wrong")
        return 0


@dataclass(frozen=True)
class Adapt:
    """Learn from the classes, or the right and wrong marks, that a gallery's metadata hold, and make a new gallery that
    ranks better.

    Its vectors are those of the original, mapped: no image is embedded again. The original stays as it is: add images and
    marks there, and adapt it again, which takes seconds. Where no map ranks what is held out better, nothing is made, and
    the exit code is 1. Where there is too little to hold any out, the new gallery is made unchecked, and that is said.
    """

    gallery: Where
    to: str
    """Where to make the new gallery: new folder, NAME.db or http://host:19530/NAME."""
    label: str | None = None
    """Metadata that tell the class of an image; images without it have none. None: only marks are learned from."""
    right: str = "right"
    """Metadata with the ids of images that are like an image (see: rankshot gallery mark)."""
    wrong: str = "wrong"
    """Metadata with the ids of images that are not like it."""
    network_to: Path | None = None
    """New folder for the network with the map behind it, where the new gallery is in no folder. Else it is within."""
    model: str | None = None
    """The network that the gallery was made with, where it has moved."""
    seed: int = 0
    """Of what is held out, and of the order of what is learned."""
    load: Files = ()

    def run(self) -> int:
        from rankshot.adaptation import RankingTransformer

        learner = RankingTransformer(random_state=whole("seed", self.seed, 0, 2**32 - 1))
        # What it warns of is told below, in other words.
        with warnings.catch_warnings(), tallying("images mapped") as tell:
            warnings.filterwarnings("ignore", "what is held out is ranked no better|there are too few rows", UserWarning)
            done = adapt(
                self.gallery,
                self.to,
                label=self.label,
                right=self.right,
                wrong=self.wrong,
                network_to=self.network_to,
                transformer=learner,
                embedder=self.model,
                tell=tell,
            )
        say(f"{self.gallery}: {learned_from(done)}")
        if done.gone:
            say(f"  {done.gone} marks of images that are there no more were left out")
        if done.is_identity:
            complain(f"held-out mAP is {100 * done.before:.2f} as it is, and no map ranks better: nothing was made")
            return 1
        if math.isnan(done.after):
            say("  there is too little to hold any out: whether it ranks better is not known")
        else:
            say(f"  held-out mAP: {100 * done.before:.2f} before, {100 * done.after:.2f} after")
        say(f"{self.to}: {done.images} images, adapted; {self.gallery} stays as it is")
        return 0


def learned_from(done: Adaptation) -> str:
    found = [f"{done.images} images"]
    if done.classes:
        found.append(f"{done.labelled} of them of {done.classes} classes")
    if done.marks or not done.classes:
        found.append(f"{done.marks} pairs marked as right or wrong")
    return ", ".join(found)


def as_it_is_kept(gallery: Gallery, given: str) -> str:
    """An id as it is; or as `search --json` has told it, with or without its quotes."""
    for text in (given, f'"{given}"') if given not in gallery else ():
        with suppress(ValueError):
            if isinstance(name := json.loads(text), str) and name in gallery:
                return name
    return given
