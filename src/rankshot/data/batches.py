"""Training batches as the paper draws them: some classes, then images from their pool."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rankshot.limits import whole
from rankshot.randomness import generator_for

from .class_choice import ByChance, ClassChoice

MOST_IMAGES = 2**17  # of a batch


class ClassBatchSampler:
    """Batches for training, as the paper draws them: some classes, then images of these without replacement.

    So the classes of a batch differ in size, and one may have a single image. Batch number i depends on the seed and on i
    alone: training can go on anywhere by `start`. Of several processes each takes its share of the same batch (`rank`,
    `world_size`).

    Iterating, as a `batch_sampler` of a DataLoader, yields lists of indices without end. `draw` gives one batch as a
    tensor.

    Args:
        labels: (n,) integers, the class of each image.
        n_classes: classes of a batch, at least 2.
        batch_size: images of a batch, of all processes together.
        seed: of the random numbers.
        start: number of the first batch when iterating.
        rank: which process this is, from 0.
        world_size: how many processes share a batch.
        choose: how the classes are drawn. None: at random.

    Raises:
        ValueError: if there are fewer classes or images than a batch needs, or it cannot be shared evenly.

    Examples:
        >>> import torch
        >>> from rankshot import data
        >>> labels = torch.arange(100) // 10  # 10 classes of 10 images
        >>> sampler = data.ClassBatchSampler(labels, n_classes=3, batch_size=12)
        >>> indices = sampler.draw(0)
        >>> len(indices), len(labels[indices].unique())
        (12, 3)
        >>> next(iter(sampler)) == indices.tolist()
        True
    """

    def __init__(
        self,
        labels: Tensor,
        n_classes: int = 16,
        batch_size: int = 128,
        *,
        seed: int = 0,
        start: int = 0,
        rank: int = 0,
        world_size: int = 1,
        choose: ClassChoice | None = None,
    ) -> None:
        labels = torch.as_tensor(labels)
        if labels.dim() != 1 or not len(labels):
            raise ValueError(f"labels must be one for each image, got shape {tuple(labels.shape)}")
        self.device = labels.device
        classes, labels, self.counts = torch.unique(labels.cpu(), return_inverse=True, return_counts=True)
        self.by_class = labels.argsort(stable=True)
        self.starts = self.counts.cumsum(0) - self.counts
        self.n_available = len(classes)
        for name, value in (("n_classes", n_classes), ("batch_size", batch_size), ("world_size", world_size)):
            whole(name, value, 1, MOST_IMAGES)
        if not 2 <= n_classes <= self.n_available:
            raise ValueError(f"a batch must have 2 to {self.n_available} classes, as many as there are, got {n_classes}")
        smallest_pool = int(self.counts.sort().values[:n_classes].sum())
        if not 2 <= batch_size <= smallest_pool:
            raise ValueError(
                f"{n_classes} classes have as few as {smallest_pool} images together, got batch size {batch_size}"
            )
        if batch_size % world_size or not 0 <= rank < world_size:
            raise ValueError(f"a batch of {batch_size} cannot be shared as part {rank} of {world_size}")
        self.n_classes, self.batch_size = n_classes, batch_size
        self.seed, self.start, self.rank, self.world_size = seed, start, rank, world_size
        self.choose = choose or ByChance()

    def draw(self, number: int) -> Tensor:
        """This process's share of a batch.

        It is drawn on the CPU whatever the device, so that batches are the same everywhere.

        Args:
            number: of the batch, from 0.

        Returns:
            (batch_size / world_size,) int64 on the device of the labels, indices of images.
        """
        generator = generator_for(self.seed, number)
        chosen = self.choose.draw(self.n_available, self.n_classes, generator)
        ends = self.counts[chosen].cumsum(0)  # of each chosen class, in the pool of all their images
        positions = torch.randperm(int(ends[-1]), generator=generator)[
            self.rank : self.batch_size : self.world_size
        ].contiguous()
        which = torch.searchsorted(ends, positions, right=True)
        within = positions - (ends - self.counts[chosen])[which]
        return self.by_class[self.starts[chosen[which]] + within].to(self.device, non_blocking=True)

    def __iter__(self) -> Iterator[list[int]]:
        number = self.start
        while True:
            yield self.draw(number).tolist()
            number += 1
