"""Metrics that are gathered over batches and processes, called as torchmetrics' retrieval metrics are."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, distributed

from rankshot.gathering import is_shared
from rankshot.limits import whole

from .checks import check_tensor
from .metrics import MOST_ITEMS, NDCG, Metric, evaluate, get_metric

OnEmpty = Literal["skip", "neg", "pos", "error"]


class RetrievalMetric:
    """The mean of a ranking metric over queries, gathered over batches and processes.

    It is called as torchmetrics' retrieval metrics are. `update` takes items; `indexes` tells the query of each item. The
    items of a query may come in any number of updates, and in any process. `compute` ranks all items so far, those of all
    processes where `torch.distributed` runs, and returns one number. `reset` forgets them.

    Args:
        metric: ap, ndcg, auc, rr, precision@K, or a `ranking.Metric`.
        top_k: only the first k items of each ranking count. None: all.
        empty_target_action: a query with nothing relevant is left out (skip), counts 0 (neg) or 1 (pos), or is an error.

    Raises:
        ValueError: if there is no metric of that name, or a setting is out of range.

    Examples:
        The items of query 0 come in two updates:

        >>> import torch
        >>> from rankshot import ranking
        >>> mean_ap = ranking.RetrievalMetric("ap")
        >>> mean_ap.update(torch.tensor([0.9, 0.8]), torch.tensor([True, False]), indexes=torch.tensor([0, 0]))
        >>> mean_ap.update(torch.tensor([0.1, 0.3]), torch.tensor([True, True]), indexes=torch.tensor([0, 1]))
        >>> mean_ap.compute()  # AP of query 0: (1/1 + 2/3) / 2, of query 1: 1
        tensor(0.9167)
    """

    def __init__(
        self, metric: str | Metric = "ap", *, top_k: int | None = None, empty_target_action: OnEmpty = "skip"
    ) -> None:
        self.metric = get_metric(metric)
        self.top_k = None if top_k is None else whole("top_k", top_k, 1, MOST_ITEMS)
        if empty_target_action not in ("skip", "neg", "pos", "error"):
            raise ValueError(f"empty_target_action must be 'skip', 'neg', 'pos' or 'error', got {empty_target_action!r}")
        self.empty_target_action = empty_target_action
        self.reset()

    def reset(self) -> None:
        """Forget all items."""
        self._items: list[tuple[Tensor, Tensor, Tensor]] = []

    def __call__(self, preds: Tensor, target: Tensor, indexes: Tensor) -> Tensor:
        """Add these items, and return the metric of them alone, as torchmetrics' objects do."""
        self.update(preds, target, indexes)
        alone = RetrievalMetric(self.metric, top_k=self.top_k, empty_target_action=self.empty_target_action)
        alone._items = self._items[-1:]
        return alone._computed(*alone._items[0])

    def __repr__(self) -> str:
        return (
            f"RetrievalMetric({self.metric.name!r}, top_k={self.top_k}, empty_target_action={self.empty_target_action!r})"
        )

    def update(self, preds: Tensor, target: Tensor, indexes: Tensor) -> None:
        """Add items.

        Args:
            preds: (n,) float, the scores; any shape, the same for all three.
            target: (n,) bool, or 0 and 1: whether each item is relevant.
            indexes: (n,) integers, the query of each item.

        Raises:
            TypeError: if `preds` are not floating point, or `indexes` no integers.
            ValueError: if shapes differ, `preds` has nan, or `target` has other values than 0 and 1.
        """
        for name, tensor in (("preds", preds), ("target", target), ("indexes", indexes)):
            check_tensor(name, tensor)
            if tensor.shape != preds.shape:
                raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but preds has {tuple(preds.shape)}")
        if not preds.is_floating_point():
            raise TypeError(f"preds must be floating point, got {preds.dtype}")
        if bool(preds.isnan().any()):
            raise ValueError("preds must be numbers, got nan")
        if indexes.is_floating_point() or indexes.is_complex() or indexes.dtype == torch.bool:
            raise TypeError(f"indexes must be whole numbers, got {indexes.dtype}")
        if target.dtype != torch.bool and not bool(((target == 0) | (target == 1)).all()):
            raise ValueError("target must be 0 or 1: whether an item is relevant")
        self._items.append((preds.detach().flatten(), target.flatten().bool(), indexes.flatten().long()))

    def compute(self) -> Tensor:
        """The mean over all queries, a scalar tensor; nan if no query has anything to rank.

        Raises:
            ValueError: if a query has nothing relevant and `empty_target_action` is "error".
        """
        return self._computed(*self._gathered())

    def _computed(self, preds: Tensor, target: Tensor, indexes: Tensor) -> Tensor:
        if not len(preds):
            return torch.tensor(torch.nan)
        values, is_empty = self._of_queries(*_as_rows(preds, target, indexes))
        if self.empty_target_action == "error" and bool(is_empty.any()):
            raise ValueError("compute: there is a query with nothing relevant")
        if self.empty_target_action in ("neg", "pos"):
            values = values.masked_fill(is_empty, float(self.empty_target_action == "pos"))
        return values.nanmean()

    def _of_queries(self, scores: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """(Q,) the metric, nan where it is not defined; and where nothing is relevant."""
        is_empty = ~relevance.any(-1)
        if self.top_k is None:
            return evaluate(self.metric, scores, relevance, valid), is_empty
        first = valid & _is_among_first(self.top_k, scores, relevance, valid)
        values = evaluate(self.metric, scores, relevance, first)
        found = (relevance & first).sum(-1)
        if self.metric is NDCG:  # its best ranking is of all relevant items, as many as fit
            values = values * _ideal(found) / _ideal(relevance.sum(-1).clamp(max=self.top_k))
        return values.masked_fill((found == 0) & ~is_empty, 0.0), is_empty

    def _gathered(self) -> tuple[Tensor, Tensor, Tensor]:
        columns = [torch.cat(column) for column in zip(*self._items, strict=True)] if self._items else []
        if is_shared():
            parts: list[list[Tensor]] = [[] for _ in range(distributed.get_world_size())]
            distributed.all_gather_object(parts, [column.cpu() for column in columns])
            columns = [torch.cat(column) for column in zip(*(part for part in parts if part), strict=True)]
        preds, target, indexes = columns or (torch.zeros(0), torch.zeros(0, dtype=torch.bool), torch.zeros(0).long())
        return preds, target, indexes


def _as_rows(preds: Tensor, target: Tensor, indexes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(n,) each -> (Q, G): scores, relevance, and which places hold an item."""
    _, row, counts = torch.unique(indexes, return_inverse=True, return_counts=True)
    order = row.argsort(stable=True)
    row = row[order]
    column = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    shape = len(counts), int(counts.max())
    scores = torch.zeros(shape, dtype=preds.dtype, device=preds.device)
    relevance, valid = torch.zeros(2, *shape, dtype=torch.bool, device=preds.device)
    scores[row, column], relevance[row, column], valid[row, column] = preds[order], target[order], True
    return scores, relevance, valid


def _is_among_first(k: int, scores: Tensor, relevance: Tensor, valid: Tensor) -> Tensor:
    """Which items stand among the first k of their ranking; of equal scores an irrelevant item comes first."""
    ordered = torch.argsort(relevance.to(torch.int8), dim=-1, stable=True)
    ordered = ordered.gather(1, scores.gather(1, ordered).argsort(dim=-1, descending=True, stable=True))
    ordered = ordered.gather(1, (~valid.gather(1, ordered)).to(torch.int8).argsort(dim=-1, stable=True))  # others last
    return torch.zeros_like(valid).scatter(1, ordered[:, :k], True)


def _ideal(count: Tensor) -> Tensor:
    """The discounted gain of so many relevant items at the top; 1 of none, to divide by."""
    most = max(int(count.max()), 1)
    gains = 1 / torch.log2(torch.arange(2, most + 2, dtype=torch.float64, device=count.device))
    return torch.cat([gains.new_ones(1), gains.cumsum(0)])[count].float()
