"""What comes after an embedding network: a head that learns, perhaps alone."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from rankshot.schema import Between
from rankshot.vectors import computable

Head = Annotated[int, Between(1, 2**14)] | Literal["scale", "linear", "whitened", "centred"]
"""So many dimensions, by a new linear layer; or all that there are, moved and scaled ("scale") or mapped ("linear", and
"whitened", which does not start as the identity), or less a part of their mean ("centred")."""
SHRINKAGE = 3.0  # of the covariance within classes towards a multiple of the identity
POWER = 0.75  # below 1, a few large numbers count less
CENTRE = 0.5  # share of the mean that is taken away; with all of it, several examples of a class are worth less
TINY = 1e-12  # smaller numbers count as so small: at 0 a power has no slope


class Headed(nn.Module):
    """An embedding network and its head.

    A network that is frozen (`--frozen all`) learns nothing but its head, which takes little time and few images.
    """

    def __init__(self, network: nn.Module, dimensions: int, head: Head) -> None:
        super().__init__()
        self.network, self.dimensions = network, dimensions
        self.head = head_for(dimensions, head)

    @property
    def wrapped_network(self) -> nn.Module:
        return self.network

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, D)."""
        embeddings: Tensor = self.head(self.network(images))
        return embeddings


class Scale(nn.Module):
    """Unit vectors, each dimension less an offset and times a factor.

    Cosines are taken from the origin. Where all embeddings point one way, as those of a classifier do, every two of them
    are similar; an offset puts the origin among them. There are too few weights to remember much about single classes, so
    what they learn holds for other classes too.

    >>> Scale(2)(torch.tensor([[3.0, 4.0]])).tolist()  # before it has learned anything
    [[0.6000000238418579, 0.800000011920929]]
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(dimensions))
        self.log_factor = nn.Parameter(torch.zeros(dimensions))

    def forward(self, embeddings: Tensor) -> Tensor:
        return (unit(embeddings) - self.offset) * self.log_factor.exp()


class FromIdentity(nn.Module):
    """Unit vectors less an offset, and a linear map that starts as the identity.

    At first, embeddings are as the network has learned them.

    >>> FromIdentity(2)(torch.tensor([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(dimensions))
        self.weight = nn.Parameter(torch.eye(dimensions))

    def forward(self, embeddings: Tensor) -> Tensor:
        return nn.functional.linear(unit(embeddings) - self.offset, self.weight)


class Whitened(FromIdentity):
    """The same, but before it learns it is fitted to classes: directions in which images of one class differ count less.

    As linear discriminant analysis has it: the inverse square root of the covariance within classes.
    """

    @property
    def is_fitted(self) -> bool:
        return not torch.equal(self.weight, torch.eye(len(self.weight), device=self.weight.device))

    @torch.no_grad()
    def fit(self, views: Tensor, labels: Tensor) -> None:
        """By embeddings (n, D) of classes (n,), or of several views of each image, (n, V, D); in place."""
        vectors = unit(views.flatten(0, -2)).double()
        labels = labels.repeat_interleave(len(vectors) // len(labels))
        _, classes, sizes = labels.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
        sums = vectors.new_zeros(len(sizes), vectors.shape[1]).index_add_(0, classes, vectors)
        apart = vectors - (sums / sizes[:, None])[classes]
        spread, directions = torch.linalg.eigh(apart.T @ apart / len(vectors))
        self.offset.copy_(vectors.mean(0))
        if spread.mean() > 0:  # some class has two images
            factors = (spread.clamp(min=0) + SHRINKAGE * spread.mean()).rsqrt()
            self.weight.copy_((directions * (factors / factors.mean())) @ directions.T)


class Centred(nn.Module):
    """Powers of the embeddings as unit vectors, less a part of their mean.

    Nothing is learned. Embeddings that come out of a ReLU all point one way, so every two images look similar; nearer to
    their mean, cosines tell new classes apart better. While the network learns, its embeddings stay as they are, and the
    mean is a moving average over the last batches, as batch norm has it of its statistics.

    >>> head = Centred(2)
    >>> embeddings = head(torch.tensor([[16.0, 0.0]]).repeat(3, 1))  # in training: as they are
    >>> _ = head.eval()
    >>> head(torch.tensor([[16.0, 16.0]]))  # the mean has come a tenth of the way to (1, 0)
    tensor([[0.6571, 0.7071]])
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dimensions, affine=False)  # for its running mean

    def forward(self, embeddings: Tensor) -> Tensor:
        vectors = self.powers(embeddings.detach() if self.training else embeddings)
        if self.training:
            if len(vectors) > 1 or type(self.norm) is not nn.BatchNorm1d:  # torch's takes no single one
                self.norm(vectors)
            return embeddings
        return vectors - CENTRE * self.mean

    @property
    def mean(self) -> Tensor:
        """(D,) of unit vectors."""
        assert self.norm.running_mean is not None
        return self.norm.running_mean

    @property
    def is_fitted(self) -> bool:
        """Whether it has a mean at all."""
        return bool(self.mean.any())

    @torch.no_grad()
    def fit(self, embeddings: Tensor) -> None:
        """By embeddings (n, D), before there are batches to follow; in place."""
        self.mean.copy_(self.powers(embeddings).mean(0))

    @staticmethod
    def powers(embeddings: Tensor) -> Tensor:
        """(B, D) -> (B, D) of length 1; a number keeps its sign."""
        embeddings = computable(embeddings)
        return unit(embeddings.sign() * embeddings.abs().clamp(min=TINY).pow(POWER))


def unit(embeddings: Tensor) -> Tensor:
    """Of length 1, as ONNX can have it too."""
    return nn.functional.normalize(embeddings, dim=-1)


def head_for(dimensions: int, head: Head) -> nn.Module:
    """A head for embeddings of so many dimensions."""
    if head == "scale":
        return Scale(dimensions)
    if head == "linear":
        return FromIdentity(dimensions)
    if head == "whitened":
        return Whitened(dimensions)
    if head == "centred":
        return Centred(dimensions)
    return nn.Linear(dimensions, head, bias=False)  # no bias: cosines are measured from zero


def headed_in(network: nn.Module) -> Headed | None:
    """The network with a head within one that others are built around, if there is one."""
    if isinstance(network, Headed):
        return network
    inner = getattr(network, "wrapped_network", None)
    return headed_in(inner) if isinstance(inner, nn.Module) else None
