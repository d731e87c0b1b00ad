"""The interface of all systems: what an update learns from, its loss, and the network that answers."""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

Description = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """What a system is made for.

    embedder        description of the embedding network (see `models.pretrained.build`)
    dimensions      of its embeddings
    classes         how many there are to learn from
    batch_classes   how many of them a batch has
    batch_size      how many images
    settings        everything that the training run was asked for, by name
    """

    embedder: Description
    dimensions: int
    classes: int
    batch_classes: int
    batch_size: int
    settings: Mapping[str, Any]


class Sampler(Protocol):
    """Draws batches: number i is the same whenever it is asked for."""

    def draw(self, number: int) -> Tensor:
        """(B,) int64: which images."""
        ...


@dataclass(frozen=True)
class NoOptions:
    """Of a system that has none."""


# Settings of every training run that only some systems have a use for, and what they are where nobody sets them.
BORROWED: dict[str, Any] = {
    "metric": "ap",
    "alpha": None,
    "epsilon": 1.0,
    "sign": 1,
    "smoothing": 0.0,
    "samples": 4,
    "wide": 0.0,
    "wide_alpha": 3.0,
    "temperature": 0.01,
}


class Method(nn.Module):
    """A few-shot system. A subclass in a file of its own is a new one; what it must have is `loss`.

    learning_rate  of Adam, where a run does not say
    settings       of a training run, where the system's defaults are others than the usual ones
    presets        name of a data set -> the settings of the system's paper there
    uses           which of BORROWED it has a use for
    clip           length that the gradient is cut to, if any
    mixed          whether its network may compute in bfloat16
    Options        a dataclass of the system's own options; `options` in a training run sets them
    """

    learning_rate: ClassVar[float] = 1e-3
    settings: ClassVar[Mapping[str, Any]] = {}
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    uses: ClassVar[tuple[str, ...]] = ()
    clip: ClassVar[float | None] = None
    mixed: ClassVar[bool] = True
    Options: ClassVar[type] = NoOptions
    loss: Callable[[Tensor, Tensor], Tensor]  # embeddings (B, D), labels (B,) -> ()

    def __init__(self, given: Given) -> None:
        super().__init__()
        self.precision = torch.float32  # what the network computes in
        name = name_of(type(self))
        for setting, usual in BORROWED.items():
            if setting not in self.uses and (got := given.settings.get(setting, usual)) != usual:
                if any(each.name == setting for each in fields(self.Options)):
                    raise ValueError(f"{setting} is an option of {name}'s own: --options {setting}={got}")
                whose = ", ".join(repr(name) for name, each in SYSTEMS.items() if setting in each.uses)
                raise ValueError(f"{name} has no {setting}: that is for {whose}, got {got!r}")
        self.options = self.options_in(given)

    @classmethod
    def options_in(cls, given: Given) -> Any:
        """Its own options, as the run has them."""
        return options_of(cls, given.settings.get("options", ()))

    @classmethod
    def network(cls, given: Given) -> Description:
        """What is kept of a run, measured and shipped: the embedding network, or one that is built around it.

        An embedding network answers by the paper's rule, unless it has a rule of its own (`fewshot.Ruling`). A network
        that is an `Answerer` classifies in its own way, and does not retrieve.
        """
        return given.embedder

    def sampler(self, labels: Tensor, given: Given, seed: int) -> Sampler:
        """Batches of some classes, and images from the pool of all theirs, as the paper draws them."""
        from rankshot.data import ClassBatchSampler

        return ClassBatchSampler(labels, given.batch_classes, given.batch_size, seed=seed)

    @classmethod
    def batch_within(cls, counts: Sequence[int], classes: int, size: int, options: Sequence[str] = ()) -> tuple[int, int]:
        """Where classes have so few images, (batch_classes, batch_size) as near as can be to what is usual."""
        classes = min(classes, len(counts))
        return classes, min(size, sum(sorted(counts)[:classes]))

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """(B, C, H, W) float from 0 to 1, (B,) -> the loss (), and the embeddings (B, D), if there are any."""
        embeddings = self.embed(model, images)
        return self.loss(embeddings, labels), embeddings

    def decisive(self, tasks: Sequence[Any]) -> int:
        """Which of the validation tasks says what network is best: the last, which is retrieval among the most classes."""
        return len(tasks) - 1

    def embed(self, model: nn.Module, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, self.precision, enabled=self.precision != torch.float32):
            embeddings: Tensor = model(images)
        return embeddings


SYSTEMS: dict[str, type[Method]] = {}
WHERE: dict[str, str] = {}  # the file that each was registered in
# Presets are called after their data: which that is, and how long to train where the preset itself does not say.
OF_DATA: dict[str, dict[str, Any]] = {
    "omniglot": {"data": "omniglot", "rotations": True, "updates": 18_000},
    "mini-imagenet": {"data": "mini-imagenet", "updates": 22_000},
}


def by_classification(tasks: Sequence[Any], shot: int | None = None) -> int:
    """Which task decides for a system that classifies by a rule of its own: that of the most classes, with these shots."""
    classification = [at for at, task in enumerate(tasks) if hasattr(task, "shot")]
    same = [at for at in classification if tasks[at].shot == shot]
    return (same or classification or [len(tasks) - 1])[-1]


def register(name: str) -> Callable[[type[Method]], type[Method]]:
    """A class decorator: the system is known by this name then."""
    file = sys._getframe(1).f_code.co_filename

    def known(system: type[Method]) -> type[Method]:
        if WHERE.get(name, file) != file:  # the same file may be run again
            raise ValueError(f"there is a method {name!r} already, in {WHERE[name]}")
        SYSTEMS[name], WHERE[name] = system, file
        return system

    return known


def system(name: str) -> type[Method]:
    """The system of a name."""
    if name not in SYSTEMS:
        raise ValueError(
            f"unknown method {name!r}: there is {', '.join(map(repr, SYSTEMS))}; one of your own comes with --load FILE"
        )
    return SYSTEMS[name]


def name_of(system: type[Method]) -> str:
    """What a system is called where it is chosen."""
    return next((name for name, each in SYSTEMS.items() if each is system), system.__name__)


def settings_for(name: str, preset: str | None = None) -> dict[str, Any]:
    """What a training run by this method starts from; with `preset`, as the method's paper has it for that data.

    >>> settings_for("prototypical")
    {'method': 'prototypical', 'batch_classes': 20, 'batch_size': 120}
    """
    chosen = system(name)
    if preset is not None and preset not in chosen.presets:
        there = ", ".join(map(repr, chosen.presets)) or "none"
        raise ValueError(f"{name} has no preset {preset!r}: there is {there}")
    if preset is None:
        return {"method": name, **chosen.settings}
    of_data = next(settings for data, settings in OF_DATA.items() if preset.startswith(data))
    return {"method": name, **chosen.settings, **of_data, **chosen.presets[preset]}


def options_of(system: type[Method], told: Sequence[str]) -> Any:
    """The system's own options from "name=value" each.

    >>> options_of(Method, [])
    NoOptions()
    """
    kinds = typing.get_type_hints(system.Options)
    chosen = {}
    for each in told:
        name, equals, text = each.partition("=")
        if name not in kinds:
            there = ", ".join(map(option_told, fields(system.Options))) or "none"
            raise ValueError(f"{name_of(system)} has no option {each!r}: there is {there}")
        if not equals:
            raise ValueError(f"option {name} has no value: write {name}=VALUE")
        chosen[name] = _read(name, text, kinds[name])
    try:
        return system.Options(**chosen)
    except TypeError as error:  # one without a default
        raise ValueError(f"the options of {name_of(system)}: {error}") from None


def option_told(option: Field[Any]) -> str:
    """As one types it, with its default."""
    default = str(option.default).lower() if isinstance(option.default, bool) else option.default
    return option.name if option.default is MISSING else f"{option.name}={default}"


def _read(name: str, text: str, kind: type) -> Any:
    readers: dict[type, Callable[[str], Any]] = {int: int, float: float, str: str}
    readers[bool] = lambda text: {"true": True, "false": False}[text.lower()]
    if kind not in readers:
        raise ValueError(f"option {name} is a {kind}: options are of type {', '.join(each.__name__ for each in readers)}")
    try:
        return readers[kind](text)
    except (KeyError, ValueError):
        told = "true or false" if kind is bool else "a whole number" if kind is int else "a number"
        raise ValueError(f"option {name} must be {told}, got {text!r}") from None
