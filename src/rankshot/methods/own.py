"""Systems of a user's own, from Python files that register them."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

from .method import WHERE


def load_systems(files: Iterable[Path]) -> list[str]:
    """Run each file, which the user names and answers for; the names of the systems that came with them."""
    names = []
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"there is no {file}")
        beside = str(file.resolve().parent)
        sys.path.insert(0, beside)  # as when a file is run by Python itself
        try:
            runpy.run_path(str(file))
        except Exception as error:  # whatever it is, it is in the user's file
            raise ValueError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
        finally:
            sys.path.remove(beside)
        found = [name for name, where in WHERE.items() if where == str(file)]
        if not found:
            raise ValueError(f"{file} registers no method: decorate a class with rankshot.methods.register")
        names += found
    return names
