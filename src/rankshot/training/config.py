"""One typed config of sections: it is the command line, it is saved with the run, and another run can start from it."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rankshot.data.loading import is_prepared_in
from rankshot.methods import METHODS
from rankshot.methods.method import LEARNING_RATE, learning_rate_of
from rankshot.models.network import NETWORKS, check_embedding_network
from rankshot.registry import Choice, unknown_setting
from rankshot.schema import checked, hints_of, read_json
from rankshot.version import FORMAT, check_format

from .old_configs import migrated, with_former_objective
from .sections import (
    SECTIONS,
    BatchConfig,
    DataConfig,
    NetworkConfig,
    OptimiserConfig,
    RunConfig,
    ValidationConfig,
    flat_name,
    plain,
)

log = logging.getLogger(__name__)

NOT_SETTINGS = ("rankshot", "format", "model", "images", "preprocess")  # what else a run's config.json tells
# Flat name -> section and field. The network and the method have settings of their own beside these.
PLACES = {flat_name(setting): (name, setting.name) for name, section in SECTIONS.items() for setting in fields(section)}
PLACES.pop("architecture")
RESERVED = ("out", "run", "resume", "load", "preset", "config", "help", "name", "is_object", "in_channels", "embedder")
ALSO_CALLED = {"lr": "learning_rate", "wd": "weight_decay", "optimizer": "optimiser"}
CHOICES = {"network": NETWORKS, "method": METHODS}


@dataclass(frozen=True)
class TrainConfig:
    """Every setting of a training run, in sections. The defaults train on `glyphs` in two minutes on two cores.

    `TrainConfig.of` takes settings by the flat names of the command line, and `flat` gives them all. The same config is
    saved as `config.json` of the run.

    Args:
        data: what to learn from.
        network: the embedding network, and the weights that it begins with.
        method: the method or loss, with its settings.
        optimiser: optimiser, learning rate and its schedule.
        batch: classes and images of a batch.
        validation: how often, and on what tasks.
        run: updates, seed, device and the like.

    Raises:
        TypeError: if a section is of another type.
        ValueError: if settings contradict each other.

    Examples:
        >>> from rankshot import TrainConfig
        >>> config = TrainConfig.of(method="nca", temperature=0.2, updates=10)
        >>> config.method.settings, config.run.updates
        ({'temperature': 0.2}, 10)
        >>> config.changed(updates=20).flat()["updates"]
        20
        >>> TrainConfig.of(epochs=10)
        Traceback (most recent call last):
        ValueError: unknown setting 'epochs': training is counted in batches, by the setting 'updates'
    """

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    method: Choice = field(default_factory=lambda: METHODS.choose("map-dlm"))
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    batch: BatchConfig = field(default_factory=BatchConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        for name, kind in {**SECTIONS, "method": Choice}.items():
            if not isinstance(getattr(self, name), kind):
                got = f"{getattr(self, name)!r:.60}"
                raise TypeError(f"{name} must be a {kind.__name__}, got {got}: TrainConfig.of(…) takes settings by name")
        if self.data.split == "trainval" and self.validation.every:
            raise ValueError("split 'trainval' leaves no classes to validate on: set validate_every to 0")
        if self.validation.patience is not None and not self.validation.every:
            raise ValueError("patience counts validations, and there are none: set validate_every")
        if self.network.mirror and "flip" not in self.data.augment:
            raise ValueError(
                "mirror needs 'flip' in augment: the network would be asked about mirror images that it never saw"
            )
        if both := self.method.settings.keys() & self.network.architecture.settings.keys():
            raise ValueError(
                f"{self.method.name} and {self.network.architecture.name} both have a setting {min(both)!r}: "
                "one of them must call it otherwise"
            )
        for choice in (self.method, self.network.architecture):
            if taken := choice.settings.keys() & {*PLACES, *CHOICES, *RESERVED}:
                raise ValueError(f"{choice.name} has a setting {min(taken)!r}, which every run has: call it otherwise")

    @classmethod
    def of(cls, **settings: Any) -> TrainConfig:
        """A config from settings by their flat names, as the command line has them; the others have their defaults.

        Raises:
            ValueError: if there is no such setting, or its value is out of range.
        """
        return cls().changed(**settings)

    def changed(self, **settings: Any) -> TrainConfig:
        """The same config with some settings changed, by their flat names. Another method starts from its own defaults.

        Raises:
            ValueError: if there is no such setting, or its value is out of range.
        """
        settings = {name: plain(value) for name, value in settings.items()}
        sections: dict[str, dict[str, Any]] = {}
        chosen: dict[str, dict[str, Any]] = {name: {} for name in CHOICES}
        for name, value in settings.items():
            if name in CHOICES:
                continue
            if name in PLACES:
                section, own_name = PLACES[name]
                sections.setdefault(section, {})[own_name] = value
            else:
                chosen[self._owner(name, settings)][name] = value
        choices = {kind: self._chosen(kind, settings.get(kind), chosen[kind]) for kind in CHOICES}
        sections.setdefault("network", {})["architecture"] = choices["network"]
        made = {section: replace(getattr(self, section), **values) for section, values in sections.items()}
        return replace(self, method=choices["method"], **made)

    def _choice(self, kind: str) -> Choice:
        return self.method if kind == "method" else self.network.architecture

    def _chosen(self, kind: str, name: Any, settings: Mapping[str, Any]) -> Choice:
        before = self._choice(kind)
        if name is not None and name != before.name:
            return _choose(kind, checked(name, str, kind), settings)
        if before.is_object:
            return before
        return _choose(kind, before.name, {**before.settings, **settings})

    def _owner(self, name: str, settings: Mapping[str, Any]) -> str:
        """Whether a setting is the method's or the network's."""
        for kind, registry in CHOICES.items():
            chosen = settings.get(kind) or self._choice(kind).name
            is_object = settings.get(kind) is None and self._choice(kind).is_object
            if not is_object and chosen in registry and name in registry[chosen].types:
                return kind
        method = settings.get("method") or self.method.name
        if settings.get("method") is None and self.method.is_object:
            raise ValueError(f"unknown setting {name!r}: {method} was given from Python, and its settings are its own")
        known = [*PLACES, *CHOICES, *METHODS[method].types, *self.network.architecture.settings]
        if name in ("epochs", "epoch"):
            raise ValueError(f"unknown setting {name!r}: training is counted in batches, by the setting 'updates'")
        if name in ALSO_CALLED:
            raise ValueError(f"unknown setting {name!r}: here it is called {ALSO_CALLED[name]!r}")
        if like := difflib.get_close_matches(name, known, n=1):
            owners = [other for registry in CHOICES.values() for other, part in registry.items() if name in part.types]
            if not owners:
                raise ValueError(f"unknown setting {name!r}: did you mean {like[0]!r}?")
        raise ValueError(unknown_setting(name, METHODS[method], METHODS))

    def flat(self) -> dict[str, Any]:
        """Every setting by its flat name."""
        of_sections = {name: getattr(getattr(self, section), own_name) for name, (section, own_name) in PLACES.items()}
        of_choices = {**self.network.architecture.settings, **self.method.settings}
        return {**of_sections, "network": self.network.architecture.name, "method": self.method.name, **of_choices}

    @property
    def first_learning_rate(self) -> float:
        """The learning rate that training starts with: the one that is given, or the method's."""
        given = self.optimiser.learning_rate
        if given is not None:
            return given
        return LEARNING_RATE if self.method.is_object else learning_rate_of(self.method.name)

    def learning_rate_at(self, update: int) -> float:
        """The learning rate of an update, which counts from 0.

        Examples:
            >>> from rankshot import TrainConfig
            >>> config = TrainConfig.of(learning_rate=0.001, schedule="step", decay=0.5, decay_every=10)
            >>> config.learning_rate_at(25)  # halved twice
            0.00025
        """
        return self.first_learning_rate * self.optimiser.factor_at(update, self.run.updates)

    def to_json(self) -> dict[str, Any]:
        """All settings, section by section, as a dictionary for a JSON file."""
        content = asdict(self)
        content["method"] = self.method.to_json()
        content["network"]["architecture"] = self.network.architecture.to_json()
        return {"format": FORMAT, **content}

    @classmethod
    def from_json(cls, path: str | Path) -> TrainConfig:
        """Read a config from a file, such as the config.json of a run; what it does not tell has its default.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it is no config, or has unknown settings.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no config {path}")
        return cls.from_settings(read_json(path), path)

    @classmethod
    def from_settings(cls, content: Mapping[str, Any], path: Path) -> TrainConfig:
        """A config from the content of a JSON file, of this version or an earlier one. `path` is named in errors."""
        try:
            config = cls._read(content)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return config._without_a_root_to_fill(path)

    @classmethod
    def _read(cls, content: Mapping[str, Any]) -> TrainConfig:
        version = checked(content.get("format", 1), int, "format")
        check_format(version)
        content = {name: value for name, value in content.items() if name not in NOT_SETTINGS}
        if version == 1 and not any(isinstance(content.get(name), dict) for name in SECTIONS):  # or without its format
            return cls.of(**migrated(content))
        known = [section.name for section in fields(cls)]
        for name in content.keys() - set(known):
            raise ValueError(f"unknown section {name!r}: there is {', '.join(map(repr, known))}")
        sections = {name: checked(content.get(name, {}), dict[str, Any], name) for name in known}
        network, method = sections["network"], sections.pop("method")
        if "architecture" in network:
            sections["network"] = {**network, "architecture": _choice_from_json("network", network["architecture"])}
        made: dict[str, Any] = {name: _section(SECTIONS[name], values, name) for name, values in sections.items()}
        if method:
            former = version < 3 and isinstance(method.get("name"), str)
            made["method"] = _choice_from_json(
                "method", with_former_objective(method["name"], method) if former else method
            )
        return cls(**made)

    def _without_a_root_to_fill(self, path: Path) -> TrainConfig:
        """A file from elsewhere may say where data lies, and not where data is to be written: that is for who types."""
        name, root = self.data.name, self.data.root
        if root is None or is_prepared_in(name, root):
            return self
        log.info("%s: there is no %s in its root %s, which is left aside; --root names one", path, name, root)
        return replace(self, data=replace(self.data, root=None))


def _choice_from_json(kind: str, content: Any) -> Choice:
    content = dict(checked(content, dict[str, Any], kind))
    name = checked(content.pop("name", None), str, f"name of the {kind}")
    if checked(content.pop("is_object", False), bool, f"is_object of the {kind}"):
        return Choice(name, is_object=True)
    return _choose(kind, name, content)


def _choose(kind: str, name: str, settings: Mapping[str, Any]) -> Choice:
    if kind == "network":
        check_embedding_network(name)
    return CHOICES[kind].choose(name, settings)


def _section(kind: Any, content: Mapping[str, Any], where: str) -> Any:
    known = hints_of(kind)
    for name in content:
        if name not in known:
            like = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {like[0]!r}?" if like else f"there is {', '.join(map(repr, known))}"
            raise ValueError(f"unknown setting {name!r} of {where}: {hint}")
    return kind(**content)
