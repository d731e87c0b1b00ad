"""Matching Networks (Vinyals et al., 2016): attention over the labelled images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from rankshot.limits import positive, whole
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network
from rankshot.vectors import unit_vectors

from .episodic import Episodic
from .method import Context, register
from .with_rule import NetworkWithRule

MOST_READS = 1000
SCALED = {"scale": 30.0}  # cosines alone are too alike for a softmax to learn from


@register_network("matching")
class MatchingNetwork(NetworkWithRule):
    """The chance of a class is the sum of the attention that its images get: the softmax of their cosines times `scale`."""

    def __init__(self, embedder: nn.Module, scale: float = 1.0) -> None:
        super().__init__(embedder)
        self.scale = positive("scale", scale)

    def class_scores(self, support: Tensor, queries: Tensor) -> Tensor:
        cosines = unit_vectors(queries) @ unit_vectors(support.flatten(1, 2)).mT
        attention = (self.scale * cosines).log_softmax(-1)
        return attention.view(*attention.shape[:2], *support.shape[1:3]).logsumexp(-1)


@register_network("matching-fce")
class FullContextMatchingNetwork(MatchingNetwork):
    """With full context embeddings: a bidirectional LSTM reads the labelled images, and each query reads them in turn.

    reads   how many times a query looks at the labelled images
    """

    def __init__(self, embedder: nn.Module, reads: int = 5, scale: float = 1.0) -> None:
        super().__init__(embedder, scale)
        self.reads = whole("reads", reads, 1, MOST_READS)
        dimensions = int(embedder.embedding_dim)  # type: ignore[arg-type]
        self.of_support = nn.LSTM(dimensions, dimensions, bidirectional=True, batch_first=True)
        self.of_query = nn.LSTMCell(2 * dimensions, dimensions)

    def class_scores(self, support: Tensor, queries: Tensor, precision: torch.dtype | None = None) -> Tensor:
        labelled, queries = self.in_context(support.flatten(1, 2), queries, precision or support.dtype)
        return super().class_scores(labelled.view_as(support), queries)

    def in_context(self, support: Tensor, queries: Tensor, precision: torch.dtype) -> tuple[Tensor, Tensor]:
        """(E, S, D) and (E, Q, D) -> the same, as they look in each other's company.

        precision   of the products with the weights of the second LSTM, which are nearly all of the work
        """
        dimensions, cell = support.shape[-1], self.of_query
        if dimensions != self.of_support.input_size:
            raise ValueError(f"made for {self.of_support.input_size} dimensions, got embeddings of {dimensions}")
        both, _ = self.of_support(support)
        support = support + torch.stack(both.chunk(2, -1)).sum(0)
        plain = queries.reshape(-1, dimensions)
        of_plain, of_seen = torch.split(cell.weight_ih.to(precision), dimensions, dim=1)
        of_others = torch.cat([of_seen, cell.weight_hh.to(precision)], 1)
        # What the query itself says to the gates is the same in every read.
        always = linear(plain.to(precision), of_plain) + (cell.bias_ih + cell.bias_hh)
        state, memory = torch.zeros_like(plain), torch.zeros_like(plain)
        for _ in range(self.reads):
            seen = (state.view_as(queries) @ support.mT).softmax(-1) @ support
            told = torch.cat([seen.reshape(-1, dimensions), state], -1).to(precision)
            enter, forget, new, out = (always + linear(told, of_others)).chunk(4, -1)
            memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
            state = out.sigmoid() * memory.tanh() + plain
        return support, state.view_as(queries)


PRESETS: dict[str, dict[str, Any]] = {
    "omniglot": {"batch_classes": 20, "batch_size": 200, **SCALED},
    "omniglot-5-shot": {"batch_classes": 20, "batch_size": 200, "shot": 5, **SCALED},
    "mini-imagenet": {"batch_classes": 5, "batch_size": 80, **SCALED},
    "mini-imagenet-5-shot": {"batch_classes": 5, "batch_size": 100, "shot": 5, **SCALED},
}


@register("matching", run_settings={"batch_classes": 20, "batch_size": 120}, presets=PRESETS)
class Matching(Episodic):
    """Matching Networks (Vinyals et al., 2016): attention over the labelled images, as they are.

    The chance of a class is the sum of the attention to its images, a softmax of cosines.

    Args:
        context: what the method is made for.
        shot: labelled images a class of a training episode.
        scale: of the cosines, 1 in the paper.

    Examples:
        One labelled image a class, in two dimensions, and one query:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import Context, Matching
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=5, batch_size=30)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = Matching(context).network(embedder)
        >>> support, queries = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[[0.8, 0.6]]])
        >>> network.class_scores(support, queries).detach().exp()  # the softmax of the cosines 0.8 and 0.6
        tensor([[[0.5498, 0.4502]]])
    """

    def __init__(self, context: Context, *, shot: int = 1, scale: float = 1.0) -> None:
        super().__init__(context, shot=shot)
        self.scale = positive("scale", scale)

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(embedder, "matching", scale=self.scale)


@register("matching-fce", run_settings={"batch_classes": 20, "batch_size": 120}, presets=PRESETS)
class FullContextMatching(Matching):
    """Matching Networks with full context embeddings: LSTMs embed each image in the context of the labelled images.

    Args:
        context: what the method is made for.
        shot: labelled images a class of a training episode.
        scale: of the cosines, 1 in the paper.
        reads: how many times a query looks at the labelled images.

    Examples:
        One labelled image a class, in two dimensions, and one query:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import Context, FullContextMatching
        >>> context = Context(embedding_dim=2, classes=100, batch_classes=5, batch_size=30)
        >>> embedder = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> network = FullContextMatching(context).network(embedder)
        >>> for weight in network.parameters():  # LSTMs of zero weights change nothing
        ...     _ = torch.nn.init.zeros_(weight)
        >>> support, queries = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[[0.8, 0.6]]])
        >>> network.class_scores(support, queries).detach().exp()  # as `Matching`
        tensor([[[0.5498, 0.4502]]])
    """

    def __init__(self, context: Context, *, shot: int = 1, scale: float = 1.0, reads: int = 5) -> None:
        super().__init__(context, shot=shot, scale=scale)
        self.reads = whole("reads", reads, 1, MOST_READS)

    def scores(self, model: Any, support: Tensor, queries: Tensor) -> Tensor:
        if self.precision == torch.float32:
            return super().scores(model, support, queries)
        scores: Tensor = model.class_scores(support, queries, self.precision)
        return scores

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(embedder, "matching-fce", reads=self.reads, scale=self.scale)
