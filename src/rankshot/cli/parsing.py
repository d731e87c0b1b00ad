"""What was typed, as the options of a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tyro

from .streams import escaped

Options = TypeVar("Options")


def parsed(kind: type[Options], arguments: Sequence[str], command: str, default: Options | None = None) -> Options:
    """A dataclass of options. Help, and what is wrong with them, is told by tyro, which ends the command."""
    given: dict[str, Any] = {} if default is None else {"default": default}
    with escaped(colours=_is_plain(arguments, default)):
        options: Options = tyro.cli(kind, args=list(arguments), prog=f"rankshot {command}", **given)
        return options


def parsed_one_of(kinds: Mapping[str, Callable[..., Any]], arguments: Sequence[str], command: str) -> Any:
    """The same, where a command has several within it."""
    with escaped(colours=_is_plain(arguments)):
        return tyro.extras.subcommand_cli_from_dict(dict(kinds), args=list(arguments), prog=f"rankshot {command}")


def _is_plain(*given: object) -> bool:
    """Whether nothing in it has to be escaped."""
    return "\\" not in repr(given)


def typed(arguments: Sequence[str]) -> set[str]:
    """The options that were really given, whatever their values.

    >>> sorted(typed(["--rule=ap", "--batch_size", "8"]))
    ['--batch-size', '--rule']
    """
    return {each.partition("=")[0].replace("_", "-") for each in arguments if each.startswith("--")}
