"""`load`: any data set by its name or its place, prepared on first use."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import cub, folder, mini_imagenet, omniglot
from .cache import root_of
from .downloading import OMNIGLOT_MD5, download_omniglot
from .image_set import ImageSet
from .listing import Listing
from .preparing import Told, prepare
from .store import IMAGES, MANIFEST, mapped, open_split, read_manifest
from .trees import Tree, open_tree

log = logging.getLogger(__name__)

NAMES = ("glyphs", "omniglot", "mini-imagenet", "cub", "cub-retrieval")
HOW = {"mini-imagenet": mini_imagenet.HOW, "cub": cub.HOW, "cub-retrieval": cub.HOW}
TERMS = {
    "glyphs": "drawn by rankshot from the fonts that come with matplotlib",
    "omniglot": "Omniglot (Lake et al., 2015), under the MIT licence",
    "mini-imagenet": "mini-ImageNet (Vinyals et al., 2016), part of ImageNet: its terms allow non-commercial research",
    "cub": "CUB-200-2011 (Wah et al., 2011): its terms allow non-commercial research",
}
TERMS["cub-retrieval"] = TERMS["cub"]
OPTIONS: dict[str, tuple[str, ...]] = {
    "glyphs": (),
    "omniglot": ("size",),
    "mini-imagenet": ("size",),
    "cub": ("size", "crop"),
    "cub-retrieval": ("size", "crop"),
}
OWN_OPTIONS = ("size", "channels", "seed", "invert")
PREPARED = re.compile("-[0-9a-f]{8}$")  # how names of prepared folders end
ARCHIVES = (".zip", ".csv", ".tar", ".tgz")


def own_source(name: str, root: str | Path | None = None) -> Path | None:
    """The folder or file of one's own images that a name stands for; None: it is the name of something prepared."""
    if name in NAMES or not Path(name).exists() or _is_prepared(name, root_of(root)):
        return None
    return Path(name)


def source_of(name: str, root: str | Path | None = None) -> list[str] | None:
    """Where one's own images come from, whether a name is their path or that of what was prepared; nothing is prepared now.

    None: it is a data set's name, or what was prepared is gone.
    """
    path = own_source(name, root)
    if path is not None:
        return [str((path.parent if path.suffix.lower() == ".csv" else path).resolve())]
    if name in NAMES or not _is_prepared(name, root_of(root)):
        return None
    source: list[str] | None = read_manifest(root_of(root) / name).get("source")
    return source


def _is_prepared(name: str, root: Path) -> bool:
    """With options of its own, and called by the name of its folder."""
    return Path(name).name == name and (root / name / MANIFEST).is_file()


def has_dark_ink(name: str, root: str | Path | None = None) -> bool:
    """Whether pictures like these show dark ink on paper, which networks see as bright: images are inverted for them."""
    manifest = read_manifest(prepared(name, root))
    return bool(manifest.get("invert", manifest["name"] in ("glyphs", "omniglot")))  # earlier ones do not tell


def load(name: str, split: str = "train", root: str | Path | None = None) -> ImageSet:
    """The images of one split ("train", "val", "test", "trainval"), memory-mapped.

    name   one of NAMES, or the path of a folder, zip, tar or csv with images of one's own (see `data.folder`)
    root   the folder of all prepared data (see `cache.root_of`)
    """
    return open_split(prepared(name, root), split)


def prepared(
    name: str,
    root: str | Path | None = None,
    *,
    sources: Sequence[Path] = (),
    strict: bool = False,
    told: Told | None = None,
    **options: Any,
) -> Path:
    """The folder of a prepared data set; prepared now, where it is not there, from `sources` or what can be found."""
    root, name = root_of(root), str(name)
    _check_options(name, sources, options)
    if name == "glyphs":
        from . import glyphs

        return glyphs.prepare(root)
    if name in NAMES:
        place = root / "-".join([name, *(f"{key}{value}" for key, value in sorted(options.items()))])
        make = partial(_named, name, sources, options, root)
    elif _is_prepared(name, root):
        return root / name
    elif Path(name).exists():
        if root.resolve().is_relative_to(Path(name).resolve()):
            raise ValueError(f"prepared data cannot lie within its source: {root} is inside {name}")
        place = root / f"{Path(name).resolve().stem}-{_fingerprint(Path(name), options)}"
        make = partial(folder.listing, Path(name), **options)
    else:
        there = ", ".join(map(repr, NAMES))
        lost = "; if it was made of a folder of yours, name that: --data FOLDER" if PREPARED.search(name) else ""
        raise ValueError(
            f"unknown data set {name!r}: there is {there}, no folder or file of that name, and nothing prepared in "
            f"{root}{lost}"
        )
    if not place.is_dir():
        listing = make()
        log.info("preparing %s, once, into %s", name, place)
        manifest = prepare(listing, place, strict=strict, told=told)
        for each in manifest["skipped"][:5]:
            log.warning("left out %s: %s", each["file"], each["why"])
        if len(manifest["skipped"]) > 5:
            log.warning("and %d more: they are listed in %s", len(manifest["skipped"]) - 5, place / MANIFEST)
    manifest = read_manifest(place)
    mapped(place, manifest)  # both complain where something is missing or of another version
    if strict and manifest["skipped"]:
        raise ValueError("{file} is no image that can be read: {why}".format(**manifest["skipped"][0]))
    return place


def _check_options(name: str, sources: Sequence[Path], options: dict[str, Any]) -> None:
    known = OPTIONS.get(name, OWN_OPTIONS)
    for each in options:
        if each not in known:
            there = f": there is {', '.join(map(repr, known))}" if known else ""
            raise ValueError(f"{name} has no option {each!r}{there}")
    for path in sources:
        if not path.exists():
            raise FileNotFoundError(f"there is no {path}")
    if sources and name == "glyphs":
        raise ValueError("glyphs is drawn, not read from files")
    if sources and name not in NAMES:
        raise ValueError(f"only {', '.join(map(repr, NAMES[1:]))} are read from elsewhere; {name!r} is none of them")


def all_prepared(root: str | Path | None = None) -> list[Path]:
    """The folders of everything that is prepared."""
    found = (path.parent for path in root_of(root).glob(f"*/**/{MANIFEST}") if (path.parent / IMAGES).exists())
    return sorted(folder for folder in found if not folder.name.startswith("."))


def _named(name: str, sources: Sequence[Path], options: dict[str, Any], root: Path) -> Listing:
    if not sources and name == "omniglot":
        sources = download_omniglot(root / "downloads")
    if not sources:
        raise FileNotFoundError(f"{name} is not prepared yet.\n{HOW[name]}")
    once = list(dict.fromkeys(path.resolve() for path in sources))
    if name == "omniglot":
        return omniglot.listing([open_tree(each) for path in once for each in _omniglot_zips(path)], **options)
    if name == "mini-imagenet":
        return _mini_imagenet(once, options)
    return cub.listing([open_tree(path) for path in once], name, **options)


def _omniglot_zips(path: Path) -> list[Path]:
    """Both, where they lie in a folder; else what was given."""
    inside = [path / each for each in OMNIGLOT_MD5]
    return inside if all(each.is_file() for each in inside) else [path]


def _mini_imagenet(sources: Sequence[Path], options: dict[str, Any]) -> Listing:
    """Folders may hold the zips and the csv files, as people keep them."""
    found: list[Path] = []
    for path in sources:
        inside = sorted(each for each in path.iterdir() if each.suffix in ARCHIVES) if path.is_dir() else []
        has_images = any(each.suffix != ".csv" for each in inside)
        found += inside if has_images else [*inside, path]
    tables = [(str(path), path.read_text(encoding="utf-8-sig")) for path in found if path.suffix == ".csv"]
    trees: list[Tree] = [open_tree(path) for path in found if path.suffix != ".csv"]
    return mini_imagenet.listing(trees, tables, **options)


def _fingerprint(path: Path, options: dict[str, Any]) -> str:
    """Changes when files come or go; to look at every file would take too long for a million of them."""
    status = path.stat()
    told: list[object] = [str(path.resolve()), options, status.st_mtime_ns, status.st_size]
    for each in sorted(_folders(path)):
        told.append([os.path.relpath(each, path), os.stat(each).st_mtime_ns])
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]


def _folders(path: Path) -> set[str]:
    """The folders that hold the images: all below a folder, links followed once; those that a csv names."""
    if path.suffix.lower() == ".csv":
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
        parents = {str((path.parent / field).parent) for line in lines for field in line.split(",") if "/" in field}
        return {each for each in parents if os.path.isdir(each)}
    found: set[str] = set()
    real: set[str] = set()
    for each, folders, _ in os.walk(path, followlinks=True) if path.is_dir() else ():
        found.add(each)
        real.add(os.path.realpath(each))
        folders[:] = [name for name in folders if os.path.realpath(os.path.join(each, name)) not in real]
    return found
