"""One typed config: it is the command line, it is saved with the run, and another run can start from it."""

from __future__ import annotations

import difflib
import logging
import math
import typing
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from rankshot.data.augmentation import check_augmentations
from rankshot.data.batches import MOST_IMAGES
from rankshot.data.loading import is_prepared_in
from rankshot.fewshot.answerer import check_norm
from rankshot.fewshot.evaluation import check_episodes
from rankshot.fewshot.tasks import MOST_CLASSES
from rankshot.limits import real, whole
from rankshot.methods import options_of, system
from rankshot.schema import checked, read_json

log = logging.getLogger(__name__)

SCHEDULES = ("constant", "step", "cosine")
DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("auto", "float32", "bfloat16")
SPLITS = ("train", "trainval")
UPDATES = 10**9  # at most
RANGES = {
    "filters": (1, 2048),
    "batch_classes": (1, MOST_IMAGES),
    "batch_size": (2, MOST_IMAGES),
    "updates": (1, UPDATES),
    "decay_every": (1, UPDATES),
    "log_every": (1, UPDATES),
    "checkpoint_every": (1, UPDATES),
    "validate_every": (0, UPDATES),
}
NOT_SETTINGS = ("rankshot", "model", "images", "preprocess")  # what else a run's config.json tells


@dataclass(frozen=True)
class TrainConfig:
    """Everything that a training run depends on. The defaults train on `glyphs` in two minutes on two cores."""

    data: str = "glyphs"
    """Data to train on: glyphs, omniglot, mini-imagenet, cub, cub-retrieval, or the path of images of your own."""
    split: str = "train"
    """Classes to learn from: train, or trainval, which takes those of validation too and leaves none to validate on."""
    rotations: bool = False
    """Count every class four times, turned by 0, 90, 180 and 270 degrees, as is usual for Omniglot."""
    root: str | None = None
    """Folder of all prepared data. None: the environment's RANKSHOT_DATA, or the platform's cache folder."""
    augment: tuple[str, ...] = ()
    """Random changes to the training images, any of: flip (left to right), crop (moved a little), jitter
    (colours), turn (whole classes, by quarters)."""

    method: str = "map-dlm"
    """What to learn by: map-dlm, map-ssvm (both rank), siamese (compares pairs), prototypical, … (docs/systems.md)."""
    options: tuple[str, ...] = ()
    """Options of that method's own, as NAME=VALUE each, such as shot=5."""
    metric: str = "ap"
    """What rankings are judged by: ap, ndcg, auc, rr, or precision@K for any K."""
    alpha: float | None = None
    """Weight of the loss-augmented ranking. None: the paper's 10, and 1 where sign is -1."""
    epsilon: float = 1.0
    """Weight of the metric within loss-augmented inference."""
    sign: int = 1
    """Direct loss minimisation: 1 moves away from a bad ranking that scores well, -1 towards a good one."""

    smoothing: float = 0.0
    """Optimise the metric averaged over a Gaussian shift of the relevant similarities, of this standard deviation."""
    samples: int = 4
    """Over how many shifts, where smoothing is not 0."""
    wide: float = 0.0
    """Weight of a second objective beside the first, with epsilon 1 and an alpha of its own: the ranking as a whole."""
    wide_alpha: float = 3.0
    """Alpha of that second objective."""
    temperature: float = 0.01
    """Of smooth-ap: how soft a comparison is."""

    init: str | None = None
    """Begin with the weights of a run folder, or those that come along, such as conv4-mini-imagenet. None: random ones."""
    filters: int = 64
    """Filters of each of the four layers of Conv4."""
    mirror: bool = False
    """Embed an image as the mean of itself and its mirror image, which wants augment flip; the paper does not."""
    batch_classes: int = 16
    """Classes in a batch."""
    batch_size: int = 128
    """Images in a batch, drawn from all images of its classes."""
    updates: int = 800
    """How many batches to learn from."""
    learning_rate: float | None = None
    """Adam's, at the beginning. None: the method's own, 0.001 for most, 0.1 for siamese."""
    schedule: str = "constant"
    """Of the learning rate: constant, step (times `decay` every `decay_every` updates), or cosine (down to 0)."""
    decay: float = 0.75
    """Factor of the step schedule."""
    decay_every: int = 2000
    """Updates between two steps of the step schedule."""
    average: float = 0.0
    """Validate and keep an average of the weights, which forgets by this factor an update. 0: the weights as they are."""
    seed: int = 0
    """Of the first weights, the batches and the validation episodes."""

    validate_every: int = 100
    """Updates between two validations on held-out classes; the best model is kept. 0: never, the last is kept."""
    validation_ways: tuple[int, ...] | None = None
    """Classes of a validation episode; the largest decides which model is best. None: 5 and 20, or as many as there are."""
    validation_shots: tuple[int, ...] = (1,)
    """Labelled images a class of a validation episode, in classification."""
    validation_episodes: int = 100
    """Episodes of each validation task."""
    norm: str = "running"
    """Batch norm in validation: by running averages, or by each batch's own statistics (batch), as the paper did."""
    log_every: int = 10
    """Updates between two lines of metrics.jsonl."""
    checkpoint_every: int = 100
    """Updates between two checkpoints to resume from."""

    device: str = "auto"
    """Where to train: cpu, cuda, or auto (cuda where there is one)."""
    precision: str = "auto"
    """What the network computes in: float32, bfloat16, or auto (bfloat16 on cuda)."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if isinstance(getattr(self, each.name), list):  # as JSON has it, and as people type it
                object.__setattr__(self, each.name, tuple(getattr(self, each.name)))

    def check(self) -> None:
        """Complain about the first setting that makes no sense."""
        for name, hint in typing.get_type_hints(type(self)).items():
            checked(getattr(self, name), hint, name)
        options_of(system(self.method), self.options)
        _one_of("split", self.split, SPLITS)
        if self.split == "trainval" and self.validate_every:
            raise ValueError("split 'trainval' leaves no classes to validate on: set validate_every to 0")
        _one_of("schedule", self.schedule, SCHEDULES)
        check_norm(self.norm)
        _one_of("device", self.device, DEVICES)
        _one_of("precision", self.precision, PRECISIONS)
        check_augmentations(self.augment)
        if self.mirror and "flip" not in self.augment:
            raise ValueError(
                "mirror needs 'flip' in augment: the network would be asked about mirror images that it never saw"
            )
        for name, (low, high) in RANGES.items():
            whole(name, getattr(self, name), low, high)
        real("learning_rate", self.first_learning_rate, 1e-30, 1e38)  # those of a float: some are there to break down by
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {self.decay}")
        if not 0 <= self.average < 1:
            raise ValueError(f"average must be from 0 to less than 1, got {self.average}")
        check_episodes(self.validation_episodes)
        for name, low in (("validation_ways", 2), ("validation_shots", 1)):
            if getattr(self, name) == ():
                raise ValueError(f"{name} must be one number or more, got none")
            for each in getattr(self, name) or ():
                whole(f"each of {name}", each, low, MOST_CLASSES)

    @property
    def first_learning_rate(self) -> float:
        return system(self.method).learning_rate if self.learning_rate is None else self.learning_rate

    def learning_rate_at(self, update: int) -> float:
        """The learning rate of update number `update`, which counts from 0.

        >>> TrainConfig(schedule="step", decay=0.5, decay_every=10).learning_rate_at(25)
        0.00025
        """
        if self.schedule == "step":
            return self.first_learning_rate * self.decay ** (update // self.decay_every)
        if self.schedule == "cosine":
            return self.first_learning_rate * 0.5 * (1 + math.cos(math.pi * update / self.updates))
        return self.first_learning_rate

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, path: Path) -> TrainConfig:
        """From a file, such as a run's config.json; what it does not tell stays at its default."""
        if not path.is_file():
            raise FileNotFoundError(f"there is no config {path}")
        return cls.from_settings({name: value for name, value in read_json(path).items() if name not in NOT_SETTINGS}, path)

    @classmethod
    def from_settings(cls, content: dict[str, Any], path: Path) -> TrainConfig:
        """From what `path` holds."""
        known = [each.name for each in fields(cls)]
        for name in content:
            if name not in known:
                like = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {like[0]!r}?" if like else f"there is {_listed(known)}"
                raise ValueError(f"{path}: unknown setting {name!r}: {hint}")
        hints = typing.get_type_hints(cls)
        try:
            config = cls(**{name: checked(value, hints[name], name) for name, value in content.items()})
            config.check()
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return config._without_a_root_to_fill(path)

    def _without_a_root_to_fill(self, path: Path) -> TrainConfig:
        """A file from elsewhere may say where data lies, and not where data is to be written: that is for who types."""
        if self.root is None or is_prepared_in(self.data, self.root):
            return self
        log.info("%s: there is no %s in its root %s, which is left aside; --root names one", path, self.data, self.root)
        return replace(self, root=None)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"unknown {name} {value!r}: there is {_listed(allowed)}")
