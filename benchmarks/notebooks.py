"""`make notebooks`: runs the notebooks and keeps what they print and draw."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
KEPT = {"image/png", "text/plain"}  # Pillow's pictures bring a JPEG as well


def executed(path: Path) -> nbformat.NotebookNode:
    """A notebook with what it prints and draws, run in a folder of its own; an error if a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, resources=resources, record_timing=False).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            for kind in set(output.get("data", {})) - KEPT:
                del output["data"][kind]
    notebook.metadata["language_info"] = {"name": "python"}  # without the version of whoever ran it
    return notebook


def main() -> None:
    for path in NOTEBOOKS:
        print(path.name, file=sys.stderr)
        nbformat.write(executed(path), path)


if __name__ == "__main__":
    main()
