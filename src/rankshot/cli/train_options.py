"""The options of `rankshot train`, made of the parts of a config and of the settings of one method and one network."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import tyro

from rankshot.methods import METHODS
from rankshot.models.network import embedding_networks
from rankshot.registry import Part, help_of, unknown_setting
from rankshot.training import TrainConfig
from rankshot.training.config import CHOICES
from rankshot.training.sections import SECTIONS, flat_name

from .parsing import Files, typed

# Options that are called otherwise than their setting: torchrun, in front of a command, would take --sign for the
# beginning of an option of its own (--signals-to-handle).
CALLED = {"sign": "update-sign"}
FORMER_NAMES = {"--run": "--out", "--sign": "--update-sign"}  # they work on
ELSEWHERE = {  # what other programs call them
    "--batch": "--batch-size",
    "--dataset": "--data",
    "--lr": "--learning-rate",
    "--optimizer": "--optimiser",
    "--output": "--out",
    "--wd": "--weight-decay",
}
GROUPS = ("data", "network", "method", "batch", "optimiser", "validation", "run")


@dataclass(frozen=True)
class Options:
    """Learn an embedding by ranking: every image of a batch ranks all others, and the rankings get better.

    The run folder holds the settings, the best network, what was measured, and a checkpoint. Then: rankshot evaluate RUN
    """

    out: Path | None = None
    """Folder to make for this run. None: runs/DATA-METHOD, with a number where that exists."""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Go on with the run in --out exactly where its last checkpoint stands; start it where there is none yet."""
    load: Files = ()
    preset: str | None = None
    """Start from the settings of the method's own paper: paper, those for --data; or a data set of it, such as omniglot."""
    config: Path | None = None
    """Take the settings from this file, such as config.json of another run; options given here come on top."""


def options_for(start: TrainConfig) -> Any:
    """`Options`, and a group of settings for every part; help tells their values in `start`."""
    values = start.flat()
    groups: dict[str, Any] = {}
    for name, kind in SECTIONS.items():
        docs = docs_of(kind)
        hints = typing.get_type_hints(kind, include_extras=True)
        settings = {flat_name(setting): (hints[setting.name], docs.get(setting.name, "")) for setting in fields(kind)}
        settings.pop("architecture", None)
        groups[name] = settings
    groups["network"] = {"network": (str, f"What learns:{listed(embedding_networks().values())}\n"), **groups["network"]}
    groups["method"] = {
        "method": (str, f"What to learn by (docs/systems.md):{listed(part for _, part in METHODS.items())}\n")
    }
    for kind, choice in (("network", start.network.architecture), ("method", start.method)):
        if not choice.is_object:
            groups[kind] |= settings_of(CHOICES[kind][choice.name])
    made: list[Any] = [
        (name, Annotated[_group(name, groups[name], values), tyro.conf.OmitArgPrefixes], field(default_factory=dict))
        for name in GROUPS
    ]
    built = make_dataclass("TrainOptions", made, bases=(Options,), frozen=True)
    built.__doc__ = Options.__doc__
    return built


def _group(name: str, settings: Mapping[str, tuple[Any, str]], values: Mapping[str, Any]) -> Any:
    """Only those that are typed come back."""
    annotated: dict[str, Any] = {}
    for setting, (hint, doc) in settings.items():
        text = f"{doc} (default: {_shown(values[setting])})"
        annotated[setting] = Annotated[hint, tyro.conf.arg(help=text, help_behavior_hint="", name=CALLED.get(setting))]
    return TypedDict(name.capitalize(), annotated, total=False)  # type: ignore[operator]


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def settings_of(part: Part) -> dict[str, tuple[Any, str]]:
    docs = help_of(part.make)
    return {name: (hint, f"Of {part.name}: {docs.get(name, name)}") for name, hint in part.types.items()}


def listed(parts: Iterable[Part]) -> str:
    """Every part with a line on what it is for."""
    return "".join(f"\n{part.name}: {part.summary.rstrip('.')}." for part in sorted(parts, key=lambda part: part.name))


def docs_of(kind: type) -> dict[str, str]:
    """The text below each field of a dataclass."""
    (made,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found, last = {}, None
    for node in getattr(made, "body", []):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last is not None:
            found[last], last = " ".join(str(node.value.value).split()), None
    return found


def by_new_names(arguments: Sequence[str]) -> list[str]:
    """What was typed, with the options of earlier versions as they are called now.

    >>> by_new_names(["--run=here", "--sign", "-1"])
    ['--out=here', '--update-sign', '-1']
    """
    parted = (argument.partition("=") for argument in arguments)
    return ["".join((FORMER_NAMES.get(option, option), *value)) for option, *value in parted]


def check_whose(arguments: Sequence[str], start: TrainConfig) -> None:
    """An option that only another method or network has is told by whose it is."""
    known = {*start.flat(), *(option.name for option in fields(Options)), "help"}
    known |= {option.replace("-", "_") for option in CALLED.values()}
    for option in sorted(typed(arguments)):
        name = option.removeprefix("--").replace("-", "_")
        if name not in known and option in ("--epochs", "--epoch"):
            raise ValueError(f"there is no option {option}: training is counted in batches, by --updates")
        if name not in known and option in ELSEWHERE:
            raise ValueError(f"there is no option {option}: it is called {ELSEWHERE[option]} here")
        if name in known or name.removeprefix("no_") in known:
            continue
        name = name.removeprefix("no_")
        for kind, registry in CHOICES.items():
            if any(name in part.types for _, part in registry.items()):
                chosen = start.method.name if kind == "method" else start.network.architecture.name
                raise ValueError(unknown_setting(name, registry[chosen], registry))


def given_in(options: Any) -> dict[str, Any]:
    """The settings that were typed, by their flat names."""
    return {name: value for group in GROUPS for name, value in getattr(options, group).items()}
