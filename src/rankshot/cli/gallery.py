"""`rankshot gallery`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import tyro

from rankshot.gallery import Gallery
from rankshot.gallery.embedding_together import help_first, helped_by_others
from rankshot.gallery.faiss_store import folder_in
from rankshot.gallery.image_files import image_files
from rankshot.gallery.kept_map import is_adapted
from rankshot.gallery.rescuing import rescue
from rankshot.gathering import failing_together, is_first, is_shared
from rankshot.hardware import device_for
from rankshot.processes import LONG_PATIENCE, check_gpus
from rankshot.terminal import say, tallying

from .gallery_adapt import Adapt, Mark, as_it_is_kept
from .gallery_upkeep import Duplicates, List, Rebuild
from .messages import complain, metadata_of, report_failures, strongest_told
from .parsing import NO_DEFAULT, Device, Files, Where, parsed_one_of
from .together import together

AT_ONCE = 1024


@dataclass(frozen=True)
class Add:
    """Add images to a gallery, which is made where it is not there yet. An image's id is its path. What is there already is
    left alone, unless its file has changed, so that the same folder can be added again when it has grown."""

    gallery: Where
    images: Annotated[tuple[Path, ...], tyro.conf.Positional, NO_DEFAULT]
    """Images, and folders of them."""
    model: str | None = None
    """Network: a run folder, or weights by name, such as efficientnet-lite0, or hf:NAME for a model of Hugging Face. None:
    the gallery's own; for a new one, the strongest for photographs that is installed."""
    load: Files = ()
    device: Device = "auto"
    metadata: Annotated[tuple[str, ...], NO_DEFAULT] = ()
    """Of all these images, as NAME=VALUE each."""

    def run(self) -> int:
        with together("gallery add", LONG_PATIENCE):
            if is_first():
                return self._add()
            with failing_together():
                pass  # the first one opens the gallery
            help_first(self.device)
            return 0

    def _add(self) -> int:
        added = changed = known = unknown = failed = 0
        with ExitStack() as stack:
            with failing_together():
                if not self.images:
                    raise ValueError("give images, or folders of them")
                notes = metadata_of(self.metadata) or None
                if self.device != "cpu":
                    check_gpus(device_for(self.device))
                gallery = stack.enter_context(opened(self.gallery, self.model, self.device))
                if is_shared():
                    gallery.embedder  # noqa: B018  # where it cannot be loaded, nobody waits for it
            embed = stack.enter_context(helped_by_others(gallery))
            tell = stack.enter_context(tallying("images added"))
            files = image_files(self.images)
            while chunk := list(islice(files, AT_ONCE)):
                done = gallery.add_files(chunk, notes, embed=embed)
                added, changed, failed = (
                    added + len(done.ids),
                    changed + len(done.changed),
                    failed + len(report_failures(done.failures)),
                )
                known, unknown = known + done.there, unknown + done.unknown
                tell(added)
            count = len(gallery)
        say(f"{self.gallery}: {added} added, {known} there already, {failed} unreadable; {count} in all")
        if not added + known + failed:
            complain(f"there are no images in {', '.join(map(str, self.images))}")
        if known and notes:
            say("  those that were there already keep their metadata: delete them first to change it")
        if changed:
            say(f"  {changed} had changed since they were added, and were embedded anew")
        if unknown:
            say(f"  {unknown} of them were added by an earlier version: whether they have changed since is not known")
        return 1 if failed else 0


@dataclass(frozen=True)
class Info:
    """How many images, and which network they were seen by."""

    gallery: Where
    verify: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Read everything, and compare it with its checksums."""
    load: Files = ()

    def run(self) -> int:
        with Gallery.open(self.gallery) as gallery:
            about = gallery.store.about["embedder"]
            say(f"{self.gallery}: {len(gallery)} images, {gallery.store.dimensions} dimensions")
            say(f"  seen by {about['name']} ({about['fingerprint']})" if about["name"] else "  vectors made elsewhere")
            if is_adapted(gallery.store):
                say("  adapted: made of another gallery, where images and marks are to be added")
            damage = gallery.store.verify() if self.verify else []
        for message in damage:
            complain(message)
        if self.verify and not damage:
            say("  everything is as it was written")
        return 1 if damage else 0


@dataclass(frozen=True)
class Delete:
    """Take images out of a gallery: all of these, or none where one is unknown."""

    gallery: Where
    ids: Annotated[tuple[str, ...], tyro.conf.Positional, NO_DEFAULT]
    """Ids, which are paths where `add` gave them; also as `rankshot search --json` tells them."""
    load: Files = ()

    def run(self) -> int:
        with Gallery.open(self.gallery) as gallery:
            gallery.delete([as_it_is_kept(gallery, name) for name in self.ids])
            say(f"{self.gallery}: {len(set(self.ids))} deleted; {len(gallery)} in all")
        return 0


@dataclass(frozen=True)
class Rescue:
    """Make a new gallery of all that is intact in a damaged one."""

    gallery: Where
    to: Annotated[Path, tyro.conf.Positional]
    """New folder."""
    load: Files = ()

    def run(self) -> int:
        rescued, lost = rescue(folder_in(self.gallery), self.to)
        for message in lost:
            complain(message)
        say(f"{self.to}: {len(rescued)} images")
        return 1 if lost else 0


COMMANDS: dict[str, Callable[..., Any]] = {
    "add": Add,
    "info": Info,
    "list": List,
    "duplicates": Duplicates,
    "delete": Delete,
    "rebuild": Rebuild,
    "mark": Mark,
    "adapt": Adapt,
    "rescue": Rescue,
}


def opened(uri: str, model: str | None, device: str) -> Gallery:
    try:
        return Gallery.open(uri, model, device=device)
    except FileNotFoundError:  # there is none; a folder that holds something else is refused by who makes one
        return Gallery(uri, model or strongest_told(), device=device)


def main(arguments: Sequence[str]) -> int:
    options = parsed_one_of(COMMANDS, arguments, "gallery")
    return int(options.run())
