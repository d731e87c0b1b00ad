"""The sections of a training config, each with the settings that concern it, typed, with one default each.

Every setting also has a flat name, by which the command line, presets and `TrainConfig.of` call it: its own, unless the
field tells another one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Annotated, Any, Literal

import numpy as np

from rankshot.data.augmentation import check_augmentations
from rankshot.data.batches import MOST_IMAGES
from rankshot.fewshot.answerer import check_batch_norm
from rankshot.fewshot.evaluation import check_episodes
from rankshot.fewshot.tasks import MOST_CLASSES
from rankshot.losses.cross_batch_memory import MOST_IMAGES as MOST_REMEMBERED
from rankshot.models.headed import Head
from rankshot.models.network import NETWORKS
from rankshot.preprocess import MOST_PIXELS_A_SIDE
from rankshot.registry import Choice
from rankshot.schema import Between, checked, hints_of

UPDATES = 10**9  # at most
Updates = Annotated[int, Between(1, UPDATES)]
Share = Annotated[float, Between(0, 1)]


def called(flat_name: str, default: Any) -> Any:
    """A field whose flat name is not its own."""
    return field(default=default, metadata={"flat": flat_name})


def flat_name(setting: Field[Any]) -> str:
    return str(setting.metadata.get("flat", setting.name))


def plain(value: Any) -> Any:
    """NumPy's numbers and paths as what a file can hold."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def _check(section: Any) -> None:
    """Every setting against its own type: lists become tuples, as JSON has them and as people type them."""
    hints = hints_of(section.__class__)
    for setting in fields(section):
        value = plain(getattr(section, setting.name))
        if not isinstance(value, Choice):
            object.__setattr__(section, setting.name, checked(value, hints[setting.name], flat_name(setting)))


@dataclass(frozen=True)
class DataConfig:
    """What to learn from."""

    name: str = called("data", "glyphs")
    """Data to train on: glyphs, omniglot, mini-imagenet, cub, cub-retrieval, or the path of images of your own."""
    split: Literal["train", "trainval"] = "train"
    """Classes to learn from: train, or trainval, which takes those of validation too and leaves none to validate on."""
    rotations: bool = False
    """Count every class four times, turned by 0, 90, 180 and 270 degrees, as is usual for Omniglot."""
    root: str | None = None
    """Folder of all prepared data. None: the environment's RANKSHOT_DATA, or the platform's cache folder."""
    size: Annotated[int, Between(1, MOST_PIXELS_A_SIDE)] | None = None
    """Pixels of a side that images of your own are made ready with. None: as the network wants them, or 84."""
    augment: tuple[str, ...] = ()
    """Random changes to the training images, any of: flip (left to right), crop (moved a little), jitter
    (colours), turn (whole classes, by quarters)."""

    def __post_init__(self) -> None:
        _check(self)
        check_augmentations(self.augment)


@dataclass(frozen=True)
class NetworkConfig:
    """What learns."""

    architecture: Choice = field(default_factory=lambda: NETWORKS.choose("conv4"))
    init: str | None = None
    """Start from the weights of a run folder, or by name, such as conv4-mini-imagenet, or hf:NAME for a model of Hugging
    Face; the network is theirs then. None: random ones. Where neither this nor --network is given, photographs of your own
    start from the strongest weights that are installed."""
    mirror: bool = False
    """Embed an image as the mean of itself and its mirror image, which wants augment flip; the paper does not."""
    head: Head | None = None
    """Learn a layer on top of the network. A number: a new linear layer, which gives embeddings of so many dimensions.
    scale: an offset and a factor for every dimension. linear: a linear layer that starts as the identity. whitened: one
    that starts by whitening what images of one class differ in, for --frozen all. centred: nothing to learn; the network's
    embeddings, less half of their mean. None: none."""
    frozen: tuple[str, ...] = ()
    """Layers of the network that do not learn, by their names, with all that is inside: 0 is the first block of conv4.
    all: every layer but the head. statistics: the running averages of batch norm, by which every image is then normalised
    in training too; the weights learn. Fine-tuning begins with statistics; where you name layers, name it too."""

    def __post_init__(self) -> None:
        _check(self)
        if self.head == "centred" and "all" in self.frozen:
            raise ValueError(
                "a centred head learns nothing, and neither would the network: leave out frozen, or take 'linear'"
            )


@dataclass(frozen=True)
class OptimiserConfig:
    """How weights follow the gradient."""

    name: Literal["adam", "adamw", "sgd"] = called("optimiser", "adam")
    """How the weights follow the gradient: adam, adamw, or sgd."""
    learning_rate: Annotated[float, Between(1e-30, 1e38)] | None = None
    """Learning rate, which warm-up and schedule begin from. None: the method's own. Fine-tuning has a lower
    one."""
    weight_decay: Annotated[float, Between(0, 1e6)] = 0.0
    """Weight decay, but not of norms and biases: adamw shrinks them by it, adam and sgd add it to the gradient."""
    momentum: Share = 0.0
    """Momentum of sgd, from 0 to less than 1."""
    nesterov: bool = False
    """Nesterov's momentum, for sgd."""
    clip: Annotated[float, Between(1e-9, 1e9)] | None = None
    """Largest norm of the gradient, of all weights together; longer ones are scaled down. None: no limit."""
    trunk_rate: Annotated[float, Between(0, 1e6)] = 1.0
    """Learning rate of the embedding network, as a factor of that of the method's own layers, such as a classifier."""
    first_layer_rate: Annotated[float, Between(1e-6, 1e6)] = 1.0
    """Learning rate of the network's first layer, as a factor of that of its last. The layers between them have rates
    between these, which rise from layer to layer. 1: all the same."""
    warm_up: Annotated[int, Between(0, UPDATES)] = 0
    """Updates in which the learning rate rises from 0."""
    schedule: Literal["constant", "step", "cosine"] = "constant"
    """Schedule of the learning rate: constant, step (times `decay` every `decay_every` updates), or cosine (down to 0)."""
    decay: Annotated[float, Between(1e-9, 1)] = 0.75
    """Factor of the step schedule."""
    decay_every: Updates = 2000
    """Updates between two steps of the step schedule."""
    average: Share = 0.0
    """Decay of an exponential moving average of the weights, which is validated and kept. 0: the weights as they are."""

    def __post_init__(self) -> None:
        _check(self)
        for name in ("momentum", "nesterov"):
            if getattr(self, name) and self.name != "sgd":
                raise ValueError(f"the optimiser {self.name} has no setting {name!r}: that is a setting of 'sgd'")
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov looks ahead along the momentum: set momentum, to 0.9 say")
        if self.average == 1 or self.momentum == 1:
            raise ValueError("average and momentum must be from 0 to less than 1, got 1")

    def factor_at(self, update: int, updates: int) -> float:
        """Of the first learning rate, at update number `update`, which counts from 0.

        >>> OptimiserConfig(schedule="step", decay=0.5, decay_every=10).factor_at(25, 100)
        0.25
        """
        factor = min(1.0, (update + 1) / self.warm_up) if self.warm_up else 1.0
        if self.schedule == "step":
            return factor * self.decay ** (update // self.decay_every)
        if self.schedule == "cosine":
            return factor * 0.5 * (1 + math.cos(math.pi * update / updates))
        return factor


@dataclass(frozen=True)
class BatchConfig:
    """What an update learns from."""

    classes: Annotated[int, Between(1, MOST_IMAGES)] = called("batch_classes", 16)
    """Classes in a batch."""
    size: Annotated[int, Between(2, MOST_IMAGES)] = called("batch_size", 128)
    """Images in a batch, drawn from all images of its classes."""
    similar: Annotated[float, Between(0, 1)] = called("batch_similar", 0.0)
    """Share of a batch's classes, from 0 to 1, that are near its first class, and so are hard to tell from it. 1: all; 0.5:
    half of them, and the others by chance; 0: all by chance. Near ones are drawn from twice as many as it takes."""
    similar_by: str | None = called("batch_similar_by", None)
    """Weights by whose mean embeddings of the training classes batch_similar knows what is near: a run folder, or a name
    such as conv4-mini-imagenet. None: by the mean images themselves."""
    micro_batch: Annotated[int, Between(0, MOST_IMAGES)] = 0
    """Embed so many images at a time, for batches that do not fit in memory. The gradient is that of the whole batch, but
    for batch norm, which sees one micro-batch at a time. 0: all at once."""
    memory: Annotated[int, Between(0, MOST_REMEMBERED)] = 0
    """Rank also the embeddings of so many images of earlier batches, as they were then. 0: none."""

    def __post_init__(self) -> None:
        _check(self)
        if self.micro_batch > self.size:
            raise ValueError(f"micro_batch must be no more than batch_size, {self.size}, got {self.micro_batch}")
        if self.similar_by is not None and not self.similar:
            raise ValueError(
                "batch_similar_by tells by what batch_similar finds near classes, and that is 0: set it, to 1 say"
            )
        if 0 < self.memory < self.size:
            raise ValueError(f"memory must hold a batch of {self.size} images at least, got {self.memory}")


@dataclass(frozen=True)
class ValidationConfig:
    """How the best network is found."""

    every: Annotated[int, Between(0, UPDATES)] = called("validate_every", 100)
    """Updates between two validations on held-out classes; the best model is kept. 0: never, the last is kept."""
    ways: tuple[Annotated[int, Between(2, MOST_CLASSES)], ...] | None = called("validation_ways", None)
    """Classes of a validation episode; the largest decides which model is best. None: 5 and 20, or as many as there are."""
    shots: tuple[Annotated[int, Between(1, MOST_CLASSES)], ...] = called("validation_shots", (1,))
    """Labelled images a class of a validation episode, in classification."""
    episodes: int = called("validation_episodes", 100)
    """Episodes of each validation task."""
    batch_norm: str = "running"
    """Batch norm in validation: by running averages, or by each batch's own statistics (batch), as the paper did."""
    patience: Annotated[int, Between(1, UPDATES)] | None = None
    """Stop after so many validations without a better network. None: go on to the end."""

    def __post_init__(self) -> None:
        _check(self)
        check_episodes(self.episodes)
        check_batch_norm(self.batch_norm)
        for name in ("ways", "shots"):
            if getattr(self, name) == ():
                raise ValueError(f"validation_{name} must be one number or more, got none")


@dataclass(frozen=True)
class RunConfig:
    """How long, where, and what is written."""

    updates: Updates = 800
    """How many batches to learn from."""
    minutes: Annotated[float, Between(0.001, 1e7)] | None = None
    """Stop after so many minutes of training, if that is earlier; validation counts too. None: no such limit."""
    seed: int = 0
    """Seed of the first weights, the batches and the validation episodes."""
    log_every: Updates = 10
    """Updates between two lines of metrics.jsonl."""
    checkpoint_every: Updates = 100
    """Updates between two checkpoints to resume from."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train: cpu, cuda, or auto (cuda where there is one)."""
    images_on: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the training images lie: cuda; cpu, for more than fit on the GPU, with every batch copied over in time; or auto
    (cuda where they fit). The result is the same."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What the network computes in: float32, bfloat16, or auto (bfloat16 on cuda)."""
    cuda_graph: bool = True
    """On a GPU: record an update once and replay it. A network that looks at its numbers on the way needs this off."""
    compiled: bool = called("compile", False)
    """Let torch.compile make faster code of the network, for other networks than conv4, and of the loop of a method that
    has one. The first update takes a minute."""
    loggers: tuple[Literal["tensorboard", "wandb"], ...] = called("logger", ())
    """Also log to tensorboard (into the run's folder) or wandb."""

    def __post_init__(self) -> None:
        _check(self)


SECTIONS: Mapping[str, Any] = {
    "data": DataConfig,
    "network": NetworkConfig,
    "optimiser": OptimiserConfig,
    "batch": BatchConfig,
    "validation": ValidationConfig,
    "run": RunConfig,
}
