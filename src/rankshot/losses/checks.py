"""What every loss asks of a batch, and of what it is compared with."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rankshot.ranking.checks import check_tensor
from rankshot.ranking.pool import check_labels
from rankshot.vectors import NotFinite, computable

REDUCTIONS = ("mean", "sum", "none")


class References(NamedTuple):
    """What the images of a batch are compared with.

    embeddings  (G, D)
    labels      (G,)
    ids         (G,)  which image each of them is, or None
    query_ids   (B,)  which image each of the batch is; None if and only if `ids` is
    """

    embeddings: Tensor
    labels: Tensor
    ids: Tensor | None = None
    query_ids: Tensor | None = None


def check_reduction(reduction: str) -> str:
    if reduction not in REDUCTIONS:
        raise ValueError(f"unknown reduction {reduction!r}: use one of {', '.join(map(repr, REDUCTIONS))}")
    return reduction


def checked_batch(name: str, embeddings: Tensor, labels_name: str, labels: Tensor) -> Tensor:
    """A copy of the labels, as int64 on the device of the embeddings: the caller may fill its own anew before backward."""
    check_tensor(name, embeddings)
    if embeddings.dim() != 2 or 0 in embeddings.shape:
        raise ValueError(f"{name} must be (images, dimensions) with at least one of each, got {tuple(embeddings.shape)}")
    if not embeddings.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {embeddings.dtype}")
    check_labels(labels_name, labels)
    if len(labels) != len(embeddings):
        raise ValueError(f"{labels_name} must be one for each of {len(embeddings)} {name}, got {len(labels)}")
    return labels.to(embeddings.device, torch.int64, copy=True)


def checked_references(
    embeddings: Tensor,
    labels: Tensor,
    indices_tuple: Any,
    ref_emb: Tensor | None,
    ref_labels: Tensor | None,
    ids: Tensor | None,
    ref_ids: Tensor | None,
    former: Tensor | None,
) -> References | None:
    """The references, from the arguments of a loss; None: the batch is compared with itself.

    former   `ref_embeddings`, as `ref_emb` was called
    """
    if isinstance(indices_tuple, Tensor):  # loss(embeddings, labels, ref_embeddings, ref_labels)
        former, indices_tuple = indices_tuple, None
        ref_emb, ref_labels = None, ref_emb if ref_labels is None else ref_labels
    if former is not None:
        message = "ref_embeddings is called ref_emb now, and is given by name: loss(…, ref_emb=…, ref_labels=…)"
        warnings.warn(message, DeprecationWarning, stacklevel=5)
        ref_emb = former
    if indices_tuple is not None:
        raise ValueError(
            "indices_tuple must be None: every image of the batch takes part, and there are no pairs or triplets for a "
            "miner to choose. Call the loss without the miner"
        )
    if ref_emb is None and ref_labels is None:
        if ref_ids is not None:
            raise ValueError("ref_emb is missing: ref_ids are of references")
        if ids is None:
            return None
        ids = checked_ids("ids", ids, embeddings)
        return References(embeddings, labels, ids, ids)
    if ref_emb is None or ref_labels is None:
        missing = "ref_labels" if ref_labels is None else "ref_emb"
        raise ValueError(f"{missing} is missing: give ref_emb and ref_labels, or neither")
    ref_labels = checked_batch("ref_emb", ref_emb, "ref_labels", ref_labels)
    if ref_emb.shape[1] != embeddings.shape[1]:
        raise ValueError(f"embeddings have {embeddings.shape[1]} dimensions, but ref_emb has {ref_emb.shape[1]}")
    if ids is None and ref_ids is None:
        return References(ref_emb, ref_labels)
    if ids is None or ref_ids is None:
        missing = "ref_ids" if ref_ids is None else "ids"
        raise ValueError(f"{missing} is missing: give ids and ref_ids, or neither")
    return References(ref_emb, ref_labels, checked_ids("ref_ids", ref_ids, ref_emb), checked_ids("ids", ids, embeddings))


def check_finite(embeddings: Tensor, references: References | None) -> None:
    """Complain about what is not finite, on a CPU. To look would make another device wait: there it shows in the loss."""
    if embeddings.device.type != "cpu" or torch.compiler.is_compiling():
        return
    others = None if references is None else references.embeddings
    try:
        if not (all_finite(embeddings) if others is None else all_finite(embeddings) & all_finite(others)).tolist():
            complain_of_not_finite(embeddings, others)
    except RuntimeError:  # within `torch.func.vmap` no value can be looked at
        return


def all_finite(embeddings: Tensor) -> Tensor:
    """A bool, where the embeddings are."""
    return computable(embeddings).isfinite().all()


def complain_of_not_finite(*embeddings: Tensor | None) -> None:
    """An error that names the first place of what is not finite in embeddings or references, if there is any."""
    for name, tensor in zip(("embeddings", "ref_emb"), embeddings, strict=True):
        if tensor is not None and not bool(all_finite(tensor)):
            row, column = (int(index) for index in (~computable(tensor).isfinite()).nonzero()[0])
            raise NotFinite(f"{name} must be finite, got {tensor[row, column].item()} in row {row}, column {column}")


def checked_ids(name: str, ids: Tensor, embeddings: Tensor) -> Tensor:
    """A copy, as int64 where the embeddings are."""
    check_labels(name, ids)
    if len(ids) != len(embeddings):
        raise ValueError(f"{name} must be one for each of {len(embeddings)} images, got {len(ids)}")
    return ids.to(embeddings.device, torch.int64, copy=True)
