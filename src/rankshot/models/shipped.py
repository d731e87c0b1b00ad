"""Weights that come with the package, by name, each in a folder like that of a run."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "weights"
CONFIG = "config.json"


def shipped() -> list[str]:
    """Their names."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{CONFIG}"))


def folder_of(run: str | Path) -> Path:
    """The folder of a run, or of weights that come with the package. A folder that is there wins over a name."""
    if not (Path(run) / CONFIG).is_file() and str(run) in shipped():
        return FOLDER / str(run)
    return Path(run)


def full_name(run: str | None) -> str | None:
    """What to remember a run by: where its folder is, from anywhere; or the name of weights that come with the package."""
    return run if run is None or is_shipped(folder_of(run)) else str(Path(run).resolve())


def or_shipped(folder: Path) -> str:
    """For the message about a folder that is not there."""
    return f", and the package has {', '.join(map(repr, shipped()))}" if not folder.exists() and shipped() else ""


def is_shipped(folder: Path) -> bool:
    return folder.parent == FOLDER
