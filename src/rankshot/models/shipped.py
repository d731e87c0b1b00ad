"""Weights by name, each in a folder like that of a run: they come with the package, from another one by pip, or from
Hugging Face (`hf:NAME`)."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from .folder_files import CONFIG
from .huggingface_folder import full_huggingface_name, huggingface_folder, is_huggingface
from .imagenet import SOURCES, imagenet_folder, is_in_cache

FOLDER = Path(__file__).parent / "weights"


def shipped() -> list[str]:
    """The names of the weights that come with the package, for `from_pretrained`.

    Returns:
        The names, sorted.

    Examples:
        >>> from rankshot import models
        >>> models.shipped()
        ['conv4-cub', 'conv4-mini-imagenet', 'conv4-omniglot', 'resnet12-mini-imagenet']
    """
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{CONFIG}"))


def folder_of(run: str | Path) -> Path:
    """The folder of a run, or of weights by their name. A folder that is there wins over a name."""
    if (Path(run) / CONFIG).is_file():
        return Path(run)
    if str(run) in shipped():
        return FOLDER / str(run)
    if is_huggingface(run):
        return huggingface_folder(str(run))
    return imagenet_folder(str(run)) if str(run) in SOURCES else Path(run)


def full_name(run: str | None) -> str | None:
    """What to remember a run by: where its folder is, from anywhere; or the name of weights."""
    if run is not None and is_huggingface(run) and not (Path(run) / CONFIG).is_file():
        return full_huggingface_name(run)  # without opening it: it may have gone since
    return run if run is None or has_name(folder_of(run)) else str(Path(run).resolve())


def or_shipped(folder: Path) -> str:
    """For the message about a folder that is not there: the names that weights have, and which was perhaps meant."""
    if folder.exists():
        return ""
    names = [*shipped(), *SOURCES]
    meant = get_close_matches(folder.name, names, n=1)
    return f". Names of weights are {', '.join(names)}" + (f". Did you mean {meant[0]}?" if meant else "")


def has_name(folder: Path) -> bool:
    """Whether it holds weights by name, and so is nobody's own to write into."""
    return folder.parent == FOLDER or is_in_cache(folder)
