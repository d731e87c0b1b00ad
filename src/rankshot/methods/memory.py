"""ConvNet with memory (Kaiser et al., 2017): keys and values, the nearest key answers, the oldest is overwritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from rankshot.limits import positive, whole
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network
from rankshot.vectors import unit_vectors

from .episodic import Episodic
from .method import Context, register
from .with_rule import NetworkWithRule

EMPTY = -1
MOST_SLOTS = 2**14


class Memory(NamedTuple):
    """Of every episode: slots with a key (E, M, D) of length 1, a value (E, M), and an age (E, M)."""

    keys: Tensor
    values: Tensor
    ages: Tensor

    @classmethod
    def empty(cls, episodes: int, slots: int, like: Tensor) -> Memory:
        """Every slot free; the first ones are the oldest, so that they are filled in their order."""
        ages = torch.arange(slots, 0, -1, device=like.device).repeat(episodes, 1) + slots
        keys = torch.zeros(episodes, slots, like.shape[-1], dtype=like.dtype, device=like.device)
        return cls(keys, torch.full_like(ages, EMPTY), ages)

    def similarities(self, queries: Tensor) -> Tensor:
        """(E, Q, D) unit vectors -> (E, Q, M) cosines; less than any of them where a slot is free."""
        cosines = queries @ self.keys.mT
        return cosines.masked_fill((self.values == EMPTY)[:, None], -2.0)

    def written(self, keys: Tensor, values: Tensor, similarities: Tensor | None = None) -> Memory:
        """The memory after T images at once, of as many different values: (E, T, D) of length 1 and (E, T).

        A nearest key of the right value is drawn half way towards the image; else the image takes the oldest slot, the
        second such image the second oldest, and so on: no two write to the same slot, if there are T of them.

        similarities   of the keys, where they are known already
        """
        nearest = (self.similarities(keys) if similarities is None else similarities).argmax(-1)
        is_right = self.values.gather(1, nearest) == values
        at_slot = torch.arange(self.keys.shape[1], device=keys.device)
        is_taken = ((nearest[..., None] == at_slot) & is_right[..., None]).any(1)
        oldest = self.ages.masked_fill(is_taken, -1).sort(dim=-1, descending=True, stable=True).indices[:, : keys.shape[1]]
        missed = (~is_right).long()
        slot = torch.where(is_right, nearest, oldest.gather(1, missed.cumsum(1) - missed))
        index = slot[..., None].expand_as(keys)
        both = unit_vectors((self.keys.gather(1, index) + keys).flatten(0, 1)).view_as(keys)
        key = torch.where(is_right[..., None], both, keys)
        return Memory(
            self.keys.scatter(1, index, key), self.values.scatter(1, slot, values), (self.ages + 1).scatter(1, slot, 0)
        )


def looked_up_and_written(
    memory: Memory, images: Tensor, values: Tensor, class_of: Tensor
) -> tuple[tuple[Tensor, Tensor, Tensor], Memory]:
    """For images (E, T, D): the nearest right and wrong keys, and whether there are both; then the memory with them.

    values     (E, T): theirs
    class_of   by value, of which EMPTY is the last: a key of another value, but of the same class, is not wrong
    """
    similarities = memory.similarities(images)
    right = similarities.masked_fill(memory.values[:, None] != values[..., None], -2.0).max(-1)
    is_same = class_of[memory.values][:, None] == class_of[values][..., None]
    wrong = similarities.masked_fill(is_same, -2.0).max(-1)
    has_both = (right.values > -2) & (wrong.values > -2)
    right_keys, wrong_keys = (memory.keys.take_along_dim(found.indices[..., None], 1) for found in (right, wrong))
    return (right_keys, wrong_keys, has_both), memory.written(images, values, similarities)


@register_network("memory")
class MemoryNetwork(NetworkWithRule):
    """Writes the labelled images into an empty memory, one by one; a class is as near as its nearest key."""

    def __init__(self, embedder: nn.Module, slots: int = 256) -> None:
        super().__init__(embedder)
        self.slots = self.most_ways = whole("slots", slots, 1, MOST_SLOTS)

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        episodes, way, shot = support.shape[:3]
        if way > self.slots:
            raise ValueError(f"a memory of {self.slots} slots cannot hold {way} classes")
        keys = unit_vectors(support).transpose(1, 2).flatten(1, 2)  # one image of each class, then the next of each
        memory = Memory.empty(episodes, min(self.slots, way * shot), keys)
        for step in range(way * shot):
            memory = memory.written(keys[:, [step]], torch.full((episodes, 1), step % way, device=keys.device))
        similarities = memory.similarities(unit_vectors(queries))
        of_class = memory.values[:, None, None, :] == torch.arange(way, device=keys.device)[:, None]
        return similarities[:, :, None, :].masked_fill(~of_class, -2.0).amax(-1)


@register(
    "memory",
    run_settings={"batch_classes": 5, "batch_size": 120},
    presets={
        "omniglot": {"batch_classes": 5, "batch_size": 480, "tasks": 16, "slots": 512},
        # In one memory of 80 classes, the nearest wrong photograph is very near to begin with.
        "mini-imagenet": {"batch_classes": 5, "batch_size": 480, "tasks": 16, "shared": False},
    },
)
class WithMemory(Episodic):
    """ConvNet with memory (Kaiser et al., 2017): the nearest key in a memory answers, the oldest is overwritten.

    The images of an episode are looked up and written one after the other. The nearest right key is to beat the nearest
    wrong one, by a margin, also of other episodes that share the memory.

    The authors make an update of every step of the episodes, at a learning rate of 1e-4 and with dropout; here an update
    is of whole episodes, with ten times the rate. An image whose class is not in the memory yet costs nothing.

    Args:
        context: what the method is made for.
        tasks: episodes in a batch.
        slots: of a memory.
        margin: between right and wrong.
        shared: one memory for all episodes of a batch, instead of one each.

    Raises:
        ValueError: if there are fewer slots than classes in a memory.

    Examples:
        One labelled image a class, in two dimensions, and one query:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import Context, WithMemory
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=5, batch_size=30)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = WithMemory(context, tasks=1).network(embedder)
        >>> support, queries = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[[0.8, 0.6]]])
        >>> network.class_scores(support, queries).detach()  # cosines with the nearest key of each class
        tensor([[[0.8000, 0.6000]]])
    """

    in_parts: ClassVar[bool] = True

    def __init__(
        self, context: Context, *, tasks: int = 4, slots: int = 256, margin: float = 0.1, shared: bool = True
    ) -> None:
        super().__init__(context, tasks=tasks)
        self.margin, self.slots = positive("margin", margin), slots
        self.memories = 1 if shared else self.tasks
        classes = self.way * self.tasks // self.memories
        if slots < classes:  # a class would be overwritten before its next image comes
            raise ValueError(f"slots must be as many as the classes in a memory, {classes}, got {slots}")

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(embedder, "memory", slots=self.slots)

    def turn_of(self, model: nn.Module) -> Callable[..., Any]:
        return looked_up_and_written

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        embeddings = self.embed(model, images)
        with torch.autocast(images.device.type, enabled=False):
            normalised = (
                unit_vectors(embeddings).view(self.tasks, self.way, self.per_class, -1).transpose(1, 2).flatten(1, 2)
            )
            return self.margin_loss(normalised, labels.view(-1, self.per_class)[:, 0]), embeddings

    def margin_loss(self, normalised: Tensor, classes: Tensor) -> Tensor:
        """The loss of unit vectors (tasks, images, D) and their classes (tasks * way,).

        Images are in turns: one of each class, then the next of each.
        """
        right, wrong, has_both = self.nearest_keys(normalised.detach(), classes)
        missing = (self.margin + (normalised * (wrong - right)).sum(-1)).clamp(min=0)
        mean: Tensor = missing.where(has_both, 0.0).sum() / has_both.sum().clamp(min=1)
        return mean

    def nearest_keys(self, normalised: Tensor, classes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For every image in its turn, the nearest right and wrong keys (tasks, images, D), and whether there are both.

        Where two episodes have a class in common, the keys that it has from the other one are neither right nor wrong: to
        push them away would be to unlearn the class.
        """
        tasks, length, dimensions = normalised.shape
        steps = normalised.view(self.memories, -1, length, dimensions).unbind(2)
        memory = Memory.empty(self.memories, min(self.slots, tasks // self.memories * length), normalised)
        values = torch.arange(tasks * self.way, device=normalised.device).view(self.memories, -1, self.way)
        class_of = torch.cat([classes, classes.new_full((1,), EMPTY)])  # by value, of which EMPTY is the last
        turn = self.compiled_turn or looked_up_and_written
        keys_of_steps = []
        for step, images in enumerate(steps):
            found, memory = turn(memory, images, values[..., step % self.way], class_of)
            keys_of_steps.append(found)
        right_keys, wrong_keys, have_both = (
            torch.stack(column, 2).flatten(0, 1) for column in zip(*keys_of_steps, strict=True)
        )
        return right_keys, wrong_keys, have_both
