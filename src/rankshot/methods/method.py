"""The interface of all systems: what an update learns from, its loss, and the network that answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from rankshot.gathering import is_shared, part_of, whole_of
from rankshot.losses import CrossBatchMemory, GatheredLoss
from rankshot.losses.batch_loss import BatchLoss
from rankshot.losses.registry import ABOUT, LOSSES, PRESETS
from rankshot.registry import Choice, Registry
from rankshot.vectors import computable

METHODS = Registry("method", also=LOSSES, about=ABOUT)
"""The registry of methods: names to train by, losses included; `METHODS[name]` has the settings of each."""
register = METHODS.register
LEARNING_RATE = 1e-3
# Presets are called after their data: which that is, and how long to train where the preset itself does not say.
OF_DATA: dict[str, dict[str, Any]] = {
    "omniglot": {"data": "omniglot", "rotations": True, "updates": 18_000},
    "mini-imagenet": {"data": "mini-imagenet", "updates": 22_000},
}


@dataclass(frozen=True)
class Context:
    """What a method is made for: the network's embeddings, the training classes and the batches.

    Args:
        embedding_dim: dimensions of the embeddings.
        classes: how many there are to learn from.
        batch_classes: how many of them a batch has.
        batch_size: images of a batch.

    Examples:
        >>> from rankshot.methods import Context, Episodic
        >>> context = Context(embedding_dim=64, classes=100, batch_classes=5, batch_size=30)
        >>> Episodic(context).per_class  # 30 images of 5 classes
        6
    """

    embedding_dim: int
    classes: int
    batch_classes: int
    batch_size: int


class Sampler(Protocol):
    """Protocol: draws batches. Batch number i is the same whenever it is asked for.

    Examples:
        One that takes the images in their order:

        >>> import torch
        >>> class InOrder:
        ...     def draw(self, number: int) -> torch.Tensor:
        ...         return torch.arange(4) + 4 * number
        >>> InOrder().draw(2)
        tensor([ 8,  9, 10, 11])
    """

    def draw(self, number: int) -> Tensor:
        """The indices of the images of batch `number`, (B,) int64."""
        ...


class Method(nn.Module):
    """A few-shot system: how it trains and how it answers. A new one is a subclass that has a `loss`.

    Its settings are the arguments of its constructor after the context. `register` may be told of it:

    - learning_rate: where a run does not say.
    - run_settings: settings of a run, where they differ from the usual ones.
    - fine_tuning: settings that are better where a whole network with weights from elsewhere is fine-tuned.
    - presets: name of a data set -> the settings of the method's paper there.

    Args:
        context: what the method is made for.

    Attributes:
        mixed: whether its network may compute in bfloat16.
        in_parts: whether several processes can share a batch: all that `learn` needs of the images is what `embed` gives.
            A class that overrides `learn` has to say so.
        loss: embeddings (B, D), labels (B,) -> a scalar.

    Examples:
        >>> import torch
        >>> from rankshot.losses import SupConLoss
        >>> from rankshot.methods import Context, Method
        >>> class Contrastive(Method):
        ...     def __init__(self, context, *, temperature: float = 1.0):
        ...         super().__init__(context)
        ...         self.loss = SupConLoss(temperature)
        >>> method = Contrastive(Context(embedding_dim=2, classes=2, batch_classes=2, batch_size=3))
        >>> images = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]).view(3, 1, 1, 2)
        >>> loss, embeddings = method.learn(torch.nn.Flatten(), images, torch.tensor([0, 0, 1]))
        >>> round(loss.item(), 4), embeddings.shape
        (0.4846, torch.Size([3, 2]))
    """

    mixed: ClassVar[bool] = True
    in_parts: ClassVar[bool] = True
    loss: Callable[[Tensor, Tensor], Tensor]  # embeddings (B, D), labels (B,) -> ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "learn" in cls.__dict__ and "in_parts" not in cls.__dict__:
            cls.in_parts = False

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        self.precision = torch.float32  # what the network computes in
        self.compiled: Callable[[Tensor], Tensor] | None = None  # the network, as torch.compile has made it faster
        self.compiled_turn: Callable[..., Any] | None = None  # and the turn of a loop of its own
        self.ids: Tensor | None = None  # (B,) which images the batch is made of, for a loss that remembers them

    def network(self, embedder: nn.Module) -> nn.Module:
        """The network that is kept, measured and shipped: the embedding network, or one built around it.

        An embedding network answers by the paper's rule, unless it has a rule of its own (`fewshot.HasRule`). A network
        that is a `fewshot.Answerer` classifies in its own way, and does not retrieve.
        """
        return embedder

    def sampler(self, labels: Tensor, seed: int) -> Sampler:
        """What draws its batches, for labels (n,). By default `data.ClassBatchSampler`, as in the paper."""
        from rankshot.data import ClassBatchSampler

        return ClassBatchSampler(labels, self.context.batch_classes, self.context.batch_size, seed=seed)

    @classmethod
    def batch_within(cls, counts: Sequence[int], classes: int, size: int, settings: Mapping[str, Any]) -> tuple[int, int]:
        """(batch_classes, batch_size) for classes with few images, as near as possible to what is asked for.

        Args:
            counts: images of each class.
            classes: asked for in a batch.
            size: asked for, of a batch.
            settings: of the method.

        Returns:
            Classes and size of a batch that these images allow.
        """
        classes = min(classes, len(counts))
        return classes, min(size, sum(sorted(counts)[:classes]))

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """The loss of a batch.

        Of several processes each has a part of the images, and the labels of the whole batch.

        Args:
            model: the network.
            images: (B, C, H, W) float from 0 to 1.
            labels: (B,) integers.

        Returns:
            The loss, a scalar, and the embeddings (B, D), or None if there are none.
        """
        embeddings = self.embed(model, images)
        return self.loss(embeddings, labels), embeddings

    def turn_of(self, model: nn.Module) -> Callable[..., Any] | None:
        """One turn of a loop that an update of this method goes through, for torch.compile; None: it has no loop.

        Args:
            model: the network, which may be what has the loop.
        """
        return None

    def decisive(self, tasks: Sequence[Any]) -> int:
        """The index of the validation task that decides: the last, which is retrieval with the most classes."""
        return len(tasks) - 1

    def embed(self, model: nn.Module, images: Tensor) -> Tensor:
        """The embeddings (B, D) of the whole batch, also where each of several processes has a part of its images."""
        embeddings = self.embed_part(model, images)
        if not is_shared() or self.ids is None:
            return embeddings
        return whole_of(computable(embeddings), len(self.ids))

    def embed_part(self, model: nn.Module, images: Tensor) -> Tensor:
        """The embeddings of the images of this process.

        Raises:
            ValueError: if the network gives no tensor.
        """
        with torch.autocast(images.device.type, self.precision, enabled=self.precision != torch.float32):
            embeddings: Tensor = (self.compiled or model)(images)
        if not isinstance(embeddings, Tensor):
            raise ValueError(f"in training the network gives a {type(embeddings).__name__}, and not embeddings (B, D)")
        return embeddings


class LossMethod(Method):
    """A method that is a loss on the embeddings of a batch, and nothing else.

    Args:
        context: what the method is made for.
        loss: embeddings (B, D), labels (B,) -> a scalar.

    Examples:
        >>> import torch
        >>> from rankshot.losses import SupConLoss
        >>> from rankshot.methods import Context, LossMethod
        >>> context = Context(embedding_dim=2, classes=2, batch_classes=2, batch_size=3)
        >>> method = LossMethod(context, SupConLoss(temperature=1.0))
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> round(method.loss_of(embeddings, torch.tensor([0, 0, 1])).item(), 4)
        0.4846
    """

    in_parts: ClassVar[bool] = True

    def __init__(self, context: Context, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__(context)
        self.loss = loss

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        embeddings = self.embed_part(model, images)
        return self.loss_of(embeddings, labels), embeddings

    def loss_of(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of embeddings (B, D) and labels (B,).

        Of several processes each has a part of the embeddings, and all labels.
        """
        if is_shared() and self.ids is not None:
            if (gathered := gathered_loss(self.loss)) is not None:  # each process ranks for its own images
                ids = None if gathered.memory is None else part_of(self.ids)
                shared: Tensor = gathered(embeddings, part_of(labels), ids=ids)
                return shared
            embeddings = whole_of(computable(embeddings), len(labels))
        if isinstance(self.loss, CrossBatchMemory):
            value: Tensor = self.loss(embeddings, labels, ids=self.ids)
            return value
        if not isinstance(self.loss, BatchLoss):  # of someone else's, which may not think of half precisions
            embeddings = computable(embeddings)
        return self.loss(embeddings, labels)

    def remember(self, images: int) -> None:
        """Compare each batch with so many images of earlier batches too (`losses.CrossBatchMemory`).

        Raises:
            ValueError: if the loss does not compare images with one another.
        """
        try:
            self.loss = CrossBatchMemory(self.loss, self.context.embedding_dim, images)  # type: ignore[arg-type]  # it checks
        except TypeError as error:
            raise ValueError(f"memory: {error}") from None


def not_in_parts(name: str) -> str:
    """Why a method is not trained by several processes."""
    return f"{name} does not learn from embeddings alone: it is trained by a single process"


def gathered_loss(loss: Any) -> GatheredLoss | None:
    """The loss over all processes, of which each has some of the queries; None: every process computes all of it."""
    base = loss.loss if isinstance(loss, CrossBatchMemory) else loss
    if isinstance(loss, GatheredLoss):
        return loss
    return GatheredLoss(loss) if isinstance(base, BatchLoss) and base.reduction == "mean" else None


def make_method(choice: Choice, context: Context) -> Method:
    """Make a method from its name and settings. A registered loss becomes a `LossMethod`.

    A loss whose constructor has arguments `dimensions` or `classes` is given those of the context.

    Args:
        choice: a name with settings, from `METHODS.choose`.
        context: what the method is made for.

    Returns:
        The method.

    Raises:
        ValueError: if what is registered is no `Method`, or has no loss.

    Examples:
        >>> from rankshot.methods import METHODS, Context, make_method
        >>> context = Context(embedding_dim=64, classes=100, batch_classes=16, batch_size=128)
        >>> make_method(METHODS.choose("triplet", {"margin": 0.3}), context).loss
        TripletLoss(margin=0.3)
    """
    if choice.name not in LOSSES:
        made = METHODS.make(choice, context)
        if not isinstance(made, Method):
            raise ValueError(f"the method {choice.name!r} is no rankshot.methods.Method, but a {type(made).__name__}")
        if type(made).learn is Method.learn and not callable(getattr(made, "loss", None)):
            raise ValueError(f"the method {choice.name!r} has no loss: give its class a `loss(embeddings, labels)`")
        return made
    part = LOSSES[choice.name]
    known = {"dimensions": context.embedding_dim, "classes": context.classes}
    parameters = inspect.signature(part.make).parameters
    needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty and name not in known]
    if inspect.isfunction(part.make) and len(needed) == 2:  # a function of embeddings and labels is the loss itself
        return LossMethod(context, partial(part, **choice.settings))
    loss = part(**{name: value for name, value in known.items() if name in parameters}, **choice.settings)
    return LossMethod(context, loss)


def method_class(name: str) -> type[Method]:
    """The class of the method of a given name; `LossMethod` for a loss.

    Args:
        name: of the method.

    Returns:
        The class.

    Raises:
        ValueError: if there is no method of that name.

    Examples:
        >>> from rankshot.methods import method_class
        >>> method_class("prototypical").__name__, method_class("map-dlm").__name__
        ('Prototypical', 'LossMethod')
    """
    made = METHODS[name].make
    return made if inspect.isclass(made) and issubclass(made, Method) else LossMethod


def learning_rate_of(name: str) -> float:
    return float(METHODS[name].about.get("learning_rate", LEARNING_RATE))


def fine_tuning_of(name: str) -> Mapping[str, Any]:
    """What it does better with where a whole network is fine-tuned; nothing of a method that was given as an object."""
    settings: Mapping[str, Any] = METHODS[name].about.get("fine_tuning", {}) if name in METHODS else {}
    return settings


def has_loop(make: object) -> bool:
    """Whether a method, or its class, has a loop that torch.compile makes faster: see `Method.turn_of`."""
    owner = make if isinstance(make, type) else type(make)
    return issubclass(owner, Method) and owner.turn_of is not Method.turn_of


def presets_of(name: str) -> Mapping[str, Mapping[str, Any]]:
    presets: Mapping[str, Mapping[str, Any]] = METHODS[name].about.get("presets", PRESETS if name in LOSSES else {})
    return presets


def settings_for(name: str, preset: str | None = None, data: str | None = None) -> dict[str, Any]:
    """The settings that a training run by a method starts from; with `preset`, those of the method's paper.

    Args:
        name: of the method.
        preset: a data set of its paper; or "paper": the one that `data` names, or is most like.
        data: what the run learns from.

    Returns:
        Settings by name, as `TrainConfig.of` takes them.

    Raises:
        TypeError: if the method or the preset is not given by its name.
        ValueError: if there is no such method, or it has no such preset.

    Examples:
        >>> from rankshot.methods import settings_for
        >>> settings_for("prototypical")
        {'method': 'prototypical', 'batch_classes': 20, 'batch_size': 120}
        >>> settings_for("map-dlm", preset="omniglot")["alpha"]
        10.0
    """
    usual: Mapping[str, Any] = METHODS[name].about.get("run_settings", {})
    if preset is None:
        return {"method": name, **usual}
    if not isinstance(preset, str):
        raise TypeError(f"preset must be a name, such as 'paper', got {preset!r:.60}: TrainConfig.of(…) takes settings")
    presets = presets_of(name)
    if preset == "paper":
        return _as_in_the_paper(name, data or "glyphs")
    if preset not in presets:
        owners = [other for other in METHODS if preset in presets_of(other)]
        whose = f"; it is one of {', '.join(owners)}" if owners else ""
        raise ValueError(f"{name} has no preset {preset!r}: there is {', '.join(map(repr, ['paper', *presets]))}{whose}")
    of_data = next((settings for data, settings in OF_DATA.items() if preset.startswith(data)), {})
    return {"method": name, **usual, **of_data, **presets[preset]}


def _as_in_the_paper(name: str, data: str) -> dict[str, Any]:
    """With the settings for this data; for data that its paper does not have, those for what is most like it, and no longer
    than usual. CUB is as long as mini-ImageNet: its own length is not told."""
    like = "omniglot" if data in ("glyphs", "omniglot") else "mini-imagenet"
    settings = settings_for(name, like)
    if data == like:
        return settings
    left_out = ("rotations",) if data.startswith("cub") else ("rotations", "updates")
    return {**{key: value for key, value in settings.items() if key not in left_out}, "data": data}


def by_classification(tasks: Sequence[Any], shot: int | None = None) -> int:
    """Which task decides for a system that classifies by a rule of its own: that of the most classes, with these shots."""
    classification = [at for at, task in enumerate(tasks) if hasattr(task, "shot")]
    same = [at for at in classification if tasks[at].shot == shot]
    return (same or classification or [len(tasks) - 1])[-1]
