"""Validation at the door: what every public function of `ranking` asks of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from rankshot.limits import real
from rankshot.vectors import NotFinite, computable

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_SETTING = 1e12  # of alpha, epsilon and 1 / epsilon: products with scores and counts stay finite in float32


class Inputs(NamedTuple):
    """Checked inputs: scores that are finite everywhere, and the two masks; an item in neither is not ranked."""

    scores: Tensor
    relevant: Tensor
    irrelevant: Tensor


def checked(scores: Tensor, relevance: Tensor, valid: Tensor | None) -> Inputs:
    """Scores in a precision to compute with, 0 where not valid, and the masks of the two sides; an error if unfit."""
    check_tensor("scores", scores)
    if scores.dim() != 2 or 0 in scores.shape:
        raise ValueError(f"scores must be (queries, items) with at least one of each, got shape {tuple(scores.shape)}")
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating point, got {scores.dtype}")
    _check_mask("relevance", relevance, scores)
    if valid is not None:
        _check_mask("valid", valid, scores)
    scores = computable(scores.detach())
    if valid is None:
        inputs = Inputs(scores, relevance, ~relevance)
    else:
        inputs = Inputs(scores.where(valid, 0.0), relevance & valid, ~relevance & valid)
    least, most = inputs.scores.aminmax()
    if not bool((most <= largest_score(scores)) & (least >= -largest_score(scores))):  # written so that nan fails
        unfit = ~(inputs.scores.abs() <= largest_score(scores))
        query, item = (int(place) for place in unfit.nonzero()[0])
        raise NotFinite(
            f"scores must be finite, and at most {largest_score(scores):.3g} in size so that sums do not overflow; "
            f"got {float(scores[query, item])} for query {query}, item {item} (`valid` can leave items out)"
        )
    return inputs


def _check_mask(name: str, mask: Tensor, scores: Tensor) -> None:
    check_tensor(name, mask)
    if mask.dtype != torch.bool:
        raise TypeError(f"{name} must be a bool tensor, got {mask.dtype}: write {name}.bool() or labels == label")
    if mask.shape != scores.shape:
        raise ValueError(f"{name} has shape {tuple(mask.shape)}, but scores have {tuple(scores.shape)}")


def largest_score(scores: Tensor) -> float:
    """Sums over a ranking of scores up to this size cannot overflow."""
    return torch.finfo(scores.dtype).max / 8 / scores.shape[1]


def may_look(tensor: Tensor) -> bool:
    """Whether values may be read to choose shapes by: not while a CUDA graph is being recorded."""
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")


def tensor_of(name: str, values: Tensor | NDArray[Any]) -> Tensor:
    """A tensor as it is; a NumPy array as a copy, since torch takes none that cannot be written to."""
    import numpy as np  # here, since rankings and losses need torch alone

    if isinstance(values, np.ndarray):
        return torch.from_numpy(np.array(values))
    if not isinstance(values, Tensor):
        raise TypeError(f"{name} must be a tensor or a NumPy array, got {type(values).__name__}")
    return values


def check_epsilon(epsilon: float) -> float:
    return real("epsilon", epsilon, 1 / LARGEST_SETTING, LARGEST_SETTING)


def check_alpha(alpha: float, name: str = "alpha") -> float:
    return real(name, alpha, -LARGEST_SETTING, LARGEST_SETTING)


def check_sign(sign: int) -> None:
    if sign not in (1, -1):
        raise ValueError(f"sign must be +1 (positive update) or -1 (negative update), got {sign!r}")
