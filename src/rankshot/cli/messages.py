"""What several commands read and say alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rankshot.gallery import Failure
from rankshot.models.strongest import strongest, why
from rankshot.terminal import say

HANDWRITING = "conv4-omniglot"


def report_failures(failures: list[Failure]) -> list[Failure]:
    """Which images could not be read, a line each."""
    for failure in failures:
        complain(f"{failure.name}: {failure.why}")
    return failures


def complain(what: str) -> None:
    say(f"rankshot: {what}", stream=sys.stderr)


def strongest_told() -> str:
    """The network for photographs where nobody names one; which it is, and how to have a stronger one, is told."""
    name = strongest()
    complain(f"network: {why(name)}. Choose another with --model, such as {HANDWRITING} for handwriting")
    return name


def metadata_of(given: Sequence[str]) -> dict[str, str]:
    """From NAME=VALUE each."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ValueError(f"metadata is NAME=VALUE each, got {text!r}")
        found[name] = value
    return found
