"""What was typed, as the options of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from rankshot.registry import load_files

from .streams import escaped

Options = TypeVar("Options")
NO_DEFAULT = tyro.conf.arg(help_behavior_hint="")  # for options whose help would end with an empty "(default: )"
Files = Annotated[
    tuple[Path, ...],
    tyro.conf.arg(
        help="Python files of your own, run first: they register networks, losses and more (docs/extending.md).",
        help_behavior_hint="",
    ),
]
Where = Annotated[str, tyro.conf.Positional, tyro.conf.arg(help="Folder, NAME.db or http://host:19530/NAME.")]
Device = Annotated[
    Literal["auto", "cpu", "cuda"], tyro.conf.arg(help="Where the network computes. auto: on a GPU where there is one.")
]
RULES = ConstructorRegistry()


@RULES.primitive_rule
def optional(kind: PrimitiveTypeInfo) -> Any:
    """X | None is shown as X: that it may be None, too, its help says in words."""
    inside = get_args(kind.type)
    if NoneType not in inside:
        return None
    others: Any = Union[tuple(option for option in inside if option is not NoneType)]  # noqa: UP007
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(others, kind.markers))
    if not isinstance(spec, PrimitiveConstructorSpec):
        return spec
    return PrimitiveConstructorSpec(
        nargs=spec.nargs,
        metavar=spec.metavar,
        instance_from_str=lambda texts: None if texts == ["None"] else spec.instance_from_str(texts),
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else spec.str_from_instance(value),
        choices=None if spec.choices is None else (*spec.choices, "None"),
    )


def parsed(kind: Callable[..., Options], arguments: Sequence[str], command: str) -> Options:
    """A dataclass of options. Help, and what is wrong with them, is told by tyro, which ends the command.

    The files of --load are run first: what they bring, the other options may be about.
    """
    load_files(peeked(arguments).load)
    return parsed_as(kind, arguments, command)


def parsed_as(kind: Callable[..., Options], arguments: Sequence[str], command: str) -> Options:
    """The same, where the files are loaded already."""
    with escaped(colours="\\" not in repr(arguments)):
        return tyro.cli(kind, args=list(arguments), prog=f"rankshot {command}", registry=RULES)


def parsed_one_of(kinds: Mapping[str, Callable[..., Any]], arguments: Sequence[str], command: str) -> Any:
    """The same, where a command has several within it."""
    load_files(peeked(arguments).load)
    with escaped(colours="\\" not in repr(arguments)):
        return tyro.extras.subcommand_cli_from_dict(
            dict(kinds), args=list(arguments), prog=f"rankshot {command}", registry=RULES
        )


def peeked(arguments: Sequence[str]) -> argparse.Namespace:
    """The few options that decide which others there are."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--load", type=Path, nargs="+", action="extend", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--init")
    parser.add_argument("--data")
    parser.add_argument("--root")
    parser.add_argument("--method")
    parser.add_argument("--network")
    parser.add_argument("--preset")
    parser.add_argument("--resume", action="store_true")
    parser.exit_on_error = False
    try:
        return parser.parse_known_args(list(arguments))[0]
    except (argparse.ArgumentError, SystemExit) as error:  # an option without its value: tyro says so
        if getattr(error, "argument_name", None) == "--load":  # which tyro would take for no files
            raise ValueError("--load needs a file: --load FILE") from None
        return parser.parse_known_args([])[0]


def typed(arguments: Sequence[str]) -> set[str]:
    """The options that were really given, whatever their values.

    >>> sorted(typed(["--rule=ap", "--batch_size", "8"]))
    ['--batch-size', '--rule']
    """
    return {argument.partition("=")[0].replace("_", "-") for argument in arguments if argument.startswith("--")}
