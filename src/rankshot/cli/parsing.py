"""What was typed, as the options of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from rankshot.registry import load_files

from .streams import escaped

Options = TypeVar("Options")
Files = Annotated[
    tuple[Path, ...],
    tyro.conf.arg(help="Python files of your own, run first: they register networks, losses and more (docs/extending.md)."),
]


def parsed(kind: Callable[..., Options], arguments: Sequence[str], command: str) -> Options:
    """A dataclass of options. Help, and what is wrong with them, is told by tyro, which ends the command.

    The files of --load are run first: what they bring, the other options may be about.
    """
    load_files(peeked(arguments).load)
    return parsed_as(kind, arguments, command)


def parsed_as(kind: Callable[..., Options], arguments: Sequence[str], command: str) -> Options:
    """The same, where the files are loaded already."""
    with escaped(colours="\\" not in repr(arguments)):
        return tyro.cli(kind, args=list(arguments), prog=f"rankshot {command}")


def parsed_one_of(kinds: Mapping[str, Callable[..., Any]], arguments: Sequence[str], command: str) -> Any:
    """The same, where a command has several within it."""
    load_files(peeked(arguments).load)
    with escaped(colours="\\" not in repr(arguments)):
        return tyro.extras.subcommand_cli_from_dict(dict(kinds), args=list(arguments), prog=f"rankshot {command}")


def peeked(arguments: Sequence[str]) -> argparse.Namespace:
    """The few options that decide which others there are."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--load", type=Path, nargs="*", action="extend", default=[])
    parser.add_argument("--out", "--run", type=Path, dest="out")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--method")
    parser.add_argument("--network")
    parser.add_argument("--preset")
    parser.add_argument("--resume", action="store_true")
    parser.exit_on_error = False
    try:
        return parser.parse_known_args(list(arguments))[0]
    except (argparse.ArgumentError, SystemExit):  # an option without its value: tyro says so
        return parser.parse_known_args([])[0]


def typed(arguments: Sequence[str]) -> set[str]:
    """The options that were really given, whatever their values.

    >>> sorted(typed(["--rule=ap", "--batch_size", "8"]))
    ['--batch-size', '--rule']
    """
    return {argument.partition("=")[0].replace("_", "-") for argument in arguments if argument.startswith("--")}
