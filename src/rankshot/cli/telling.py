"""What several commands read and say alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rankshot.gallery import Failure


def told(failures: list[Failure]) -> list[Failure]:
    """Who could not be read, a line each."""
    for each in failures:
        print(f"rankshot: {each.name}: {each.why}", file=sys.stderr)
    return failures


def typed(arguments: Sequence[str]) -> set[str]:
    """The options that were really given, whatever their values.

    >>> sorted(typed(["--rule=ap", "--batch_size", "8"]))
    ['--batch-size', '--rule']
    """
    return {each.partition("=")[0].replace("_", "-") for each in arguments if each.startswith("--")}


def metadata_of(given: Sequence[str]) -> dict[str, str]:
    """From NAME=VALUE each."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ValueError(f"metadata is NAME=VALUE each, got {each!r}")
        found[name] = value
    return found
