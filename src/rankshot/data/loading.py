"""`load`: any data set by its name or its place, prepared on first use."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rankshot.cache import root_of
from rankshot.files import text_of
from rankshot.preprocess import Preprocess

from . import cub, folder, mini_imagenet, omniglot, registered
from .downloading import OMNIGLOT_MD5, download_omniglot
from .image_set import ImageSet
from .listing import Listing, advised
from .preparing import Progress, prepare
from .registered import DATA_SETS
from .sources import changes_since, earlier, files_of, fingerprint, write_sources
from .store import IMAGES, MANIFEST, mapped, open_split, preprocess_in, read_manifest
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
OWN_OPTIONS = ("size", "channels", "seed", "invert", "fit", "interpolation")
PREPARED = re.compile("-[0-9a-f]{8}$")  # how names of prepared folders end
ARCHIVES = (".zip", ".csv", ".tar", ".tgz")


def own_source(name: str, root: str | Path | None = None) -> Path | None:
    """The folder or file of one's own images that a name stands for; None: it is the name of something prepared."""
    if is_name(name) or not Path(name).exists() or _is_prepared(name, root_of(root)):
        return None
    return Path(name)


def is_name(name: str) -> bool:
    """Whether it is the name of a data set that is known."""
    return name in NAMES or name in DATA_SETS


def source_of(name: str, root: str | Path | None = None) -> list[str] | None:
    """Where one's own images come from, whether a name is their path or that of what was prepared; nothing is prepared now.

    None: it is a data set's name, or what was prepared is gone.
    """
    path = own_source(name, root)
    if path is not None:
        return [str((path.parent if path.suffix.lower() == ".csv" else path).resolve())]
    if is_name(name) or not _is_prepared(name, root_of(root)):
        return None
    source: list[str] | None = read_manifest(root_of(root) / name).get("source")
    return source


def _is_prepared(name: str, root: Path) -> bool:
    """With options of its own, and called by the name of its folder."""
    return Path(name).name == name and (root / name / MANIFEST).is_file()


def preprocess_of(name: str, root: str | Path | None = None) -> Preprocess:
    """How the pictures of a data set were made ready: their size, channels and fit.

    Args:
        name: as in `load`.
        root: the folder of all prepared data. None: `RANKSHOT_DATA`, or the user's cache.

    Returns:
        The `Preprocess`.

    Raises:
        ValueError: if there is no data set of that name.
        FileNotFoundError: if a known data set is not prepared and its files are not found.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import data
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(3):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> print(data.preprocess_of("pictures", root="prepared"))
        84x84 in colour
    """
    return preprocess_in(read_manifest(prepared(name, root)))


def load(name: str, split: str = "train", root: str | Path | None = None) -> ImageSet:
    """Load the images of one split of a data set, memory-mapped. It is prepared on first use.

    Args:
        name: "glyphs", "omniglot", "mini-imagenet", "cub", "cub-retrieval", a registered name, or the path of a folder,
            zip, tar or csv with images of one's own: FOLDER/CLASS/*.png, or FOLDER/{train,val,test}/CLASS/*.png.
        split: "train", "val", "test", "trainval" or "all". Splits have different classes.
        root: the folder of all prepared data. None: `RANKSHOT_DATA`, or the user's cache.

    Returns:
        The `ImageSet`.

    Raises:
        ValueError: if there is no data set of that name, or no class in that split.
        FileNotFoundError: if a known data set is not prepared and its files are not found.

    Examples:
        A folder with one folder a class:

        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import data
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(3):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> images = data.load("pictures", "all", root="prepared")
        >>> images
        ImageSet(6 images of 3x84x84, 2 classes)
        >>> images.classes, images.labels.tolist()
        (('bright', 'dark'), [0, 0, 0, 1, 1, 1])
        >>> images.images[:, 0, 0, 0].tolist()
        [200, 201, 202, 10, 11, 12]
    """
    return open_split(prepared(name, root), split)


def prepared(
    name: str,
    root: str | Path | None = None,
    *,
    sources: Sequence[Path] = (),
    strict: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """The folder of a prepared data set. It is prepared now if it is not there.

    Args:
        name: as in `load`.
        root: the folder of all prepared data. None: `RANKSHOT_DATA`, or the user's cache.
        sources: files or folders that a known data set is read from, such as the zips of Omniglot.
        strict: an image that cannot be read is an error; else it is left out, with a warning.
        progress: called while images are prepared.
        **options: of the data set: of one's own images `size`, `channels`, `seed`, `invert`, `fit`, `interpolation`.

    Returns:
        The folder, below `root`.

    Raises:
        ValueError: if there is no data set of that name, or it has no such option; with `strict`, if an image is damaged.
        FileNotFoundError: if a source is not there.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import data
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(3):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = data.prepared("pictures", root="prepared", size=28, channels=1)
        >>> data.load(folder.name, "all", root="prepared")
        ImageSet(6 images of 1x28x28, 2 classes)
    """
    root, name = root_of(root), str(name)
    _check_options(name, sources, options)
    if name == "glyphs":
        from . import glyphs

        return glyphs.prepare(root)
    if name in DATA_SETS:
        return registered.prepare(name, root, options)
    if name in NAMES:
        target = root / "-".join([name, *(f"{key}{value}" for key, value in sorted(options.items()))])
        make = partial(_named, name, sources, options, root)
    elif _is_prepared(name, root):
        return root / name
    elif Path(name).exists():
        if root.resolve().is_relative_to(Path(name).resolve()):
            raise ValueError(f"prepared data cannot lie within its source: {root} is inside {name}")
        return _own(Path(name), root, options, strict=strict, progress=progress)
    else:
        known = ", ".join(map(repr, (*NAMES, *DATA_SETS)))
        lost = "; if it was made of a folder of yours, name that: --data FOLDER" if PREPARED.search(name) else ""
        raise ValueError(
            f"unknown data set {name!r}: there is {known}, no folder or file, and no prepared data set of that name in "
            f"{root}{lost}"
        )
    if not target.is_dir():
        _prepare(make(), target, strict=strict, progress=progress)
    return _whole(target, strict=strict)


def _own(path: Path, root: Path, options: dict[str, Any], *, strict: bool, progress: Progress | None) -> Path:
    """Images of one's own, prepared anew where they have changed. What was there before stays, for runs that use it."""
    stem, files = path.resolve().stem, files_of(path)
    target = root / f"{stem}-{fingerprint(path, options, files.states)}"
    if not target.is_dir() and (before := earlier(root, stem, path, options)) is not None:
        changes = changes_since(before, files)
        if not any(changes):
            return _whole(before, strict=strict)
        log.info("%s since %s was prepared: preparing %s anew", changes, before.name, path)
    if not target.is_dir():
        listing = folder.listing(path, **options)
        _prepare(
            listing, target, strict=strict, progress=progress, also=lambda made: write_sources(made, path, options, files)
        )
    return _whole(target, strict=strict)


def _prepare(
    listing: Listing, target: Path, *, strict: bool, progress: Progress | None, also: Callable[[Path], None] | None = None
) -> None:
    log.info("preparing %s, once, into %s", listing.name, target)
    manifest = prepare(listing, target, strict=strict, progress=progress, also=also)
    for skipped in manifest["skipped"][:5]:
        log.warning("left out %s: %s", skipped["file"], skipped["why"])
    if len(manifest["skipped"]) > 5:
        log.warning("and %d more: they are listed in %s", len(manifest["skipped"]) - 5, target / MANIFEST)


def _whole(prepared_folder: Path, *, strict: bool) -> Path:
    """A prepared folder, if nothing of it is missing or of another version."""
    manifest = read_manifest(prepared_folder)
    mapped(prepared_folder, manifest)
    if strict and manifest["skipped"]:
        raise ValueError("{file} is no image that can be read: {why}".format(**manifest["skipped"][0]))
    return prepared_folder


def is_prepared_in(name: str, root: str | Path) -> bool:
    """Whether a data set is there already under a root: to load it from there, nothing would be written."""
    root = Path(root)
    if name == "glyphs":
        from . import glyphs

        return glyphs.folder_in(root).is_dir()
    if name in DATA_SETS:
        return registered.folder_in(root, name, DATA_SETS[name].defaults).is_dir()
    if name in NAMES or _is_prepared(name, root):
        return (root / name / MANIFEST).is_file()
    if not Path(name).exists():
        return False
    path, states = Path(name), files_of(Path(name)).states
    return (root / f"{path.resolve().stem}-{fingerprint(path, {}, states)}" / MANIFEST).is_file()


def _check_options(name: str, sources: Sequence[Path], options: dict[str, Any]) -> None:
    known = tuple(DATA_SETS[name].types) if name in DATA_SETS else OPTIONS.get(name, OWN_OPTIONS)
    for option in options:
        if option not in known:
            hint = f": there is {', '.join(map(repr, known))}" if known else ""
            raise ValueError(f"{name} has no option {option!r}{hint}")
    for path in sources:
        if not path.exists():
            raise FileNotFoundError(f"there is no {path}")
    if sources and name == "glyphs":
        raise ValueError("glyphs is drawn, not read from files")
    if sources and name not in NAMES:
        raise ValueError(f"only {', '.join(map(repr, NAMES[1:]))} are read from elsewhere; {name!r} is none of them")


def all_prepared(root: str | Path | None = None) -> list[Path]:
    """The folders of all prepared data sets.

    Args:
        root: the folder of all prepared data. None: `RANKSHOT_DATA`, or the user's cache.

    Returns:
        The folders, sorted.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import data
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(3):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> data.all_prepared("prepared")
        []
        >>> folder = data.prepared("pictures", root="prepared")
        >>> data.all_prepared("prepared") == [folder]
        True
    """
    root = root_of(root)
    manifests = (*root.glob(f"*/{MANIFEST}"), *root.glob(f"*/*/{MANIFEST}"))  # glyphs has a folder for each way it is drawn
    folders = (path.parent for path in manifests if (path.parent / IMAGES).exists())
    return sorted(folder for folder in folders if not folder.name.startswith("."))


def _named(name: str, sources: Sequence[Path], options: dict[str, Any], root: Path) -> Listing:
    if not sources and name == "omniglot":
        sources = download_omniglot(root / "downloads")
    if not sources:
        raise advised(FileNotFoundError(f"{name} is not prepared yet."), HOW[name])
    once = list(dict.fromkeys(path.resolve() for path in sources))
    if name == "omniglot":
        return omniglot.listing([open_tree(zip_path) for path in once for zip_path in _omniglot_zips(path)], **options)
    if name == "mini-imagenet":
        return _mini_imagenet(once, options)
    return cub.listing([open_tree(path) for path in once], name, **options)


def _omniglot_zips(path: Path) -> list[Path]:
    """Both, where they lie in a folder; else what was given."""
    inside = [path / name for name in OMNIGLOT_MD5]
    return inside if all(zip_path.is_file() for zip_path in inside) else [path]


def _mini_imagenet(sources: Sequence[Path], options: dict[str, Any]) -> Listing:
    """Folders may hold the zips and the csv files, as people keep them."""
    files: list[Path] = []
    for path in sources:
        inside = sorted(file for file in path.iterdir() if file.suffix in ARCHIVES) if path.is_dir() else []
        has_images = any(file.suffix != ".csv" for file in inside)
        files += inside if has_images else [*inside, path]
    tables = [(str(path), text_of(path)) for path in files if path.suffix == ".csv"]
    trees: list[Tree] = [open_tree(path) for path in files if path.suffix != ".csv"]
    return mini_imagenet.listing(trees, tables, **options)
