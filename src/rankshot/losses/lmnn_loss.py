"""Large margin nearest neighbours (Weinberger and Saul, 2009)."""

from __future__ import annotations

import torch
from torch import Tensor

from rankshot.limits import SMALLEST, positive, real, whole
from rankshot.vectors import squared_distances

from .batch_loss import CosineLoss
from .registry import register

MOST_NEIGHBOURS = 10**6


@register("lmnn", fixed={"reduction": "mean"}, summary="large margin nearest neighbours (Weinberger and Saul, 2009)")
class LMNNLoss(CosineLoss):
    """Large margin nearest neighbours: pulls near images of the same class in, and pushes images of other classes out.

    What it optimises: (1 - push) sum_j d(i, j) + push sum_{j, l} [margin + d(i, j) - d(i, l)]_+, with squared distances
    of unit vectors, for the `neighbours` nearest images j of i's class and all images l of other classes; the mean over
    i. The paper chooses the neighbours once, by pixels; here they are those of the batch, by the embeddings. Its margin
    is 1, for distances of any size; squared distances of unit vectors are at most 4, and at most 2 after a ReLU.

    What batches it needs: several classes with two or more images each. An image that is alone in its class is left out.

    | input      | shape  | what                                                        |
    |------------|--------|-------------------------------------------------------------|
    | embeddings | (B, D) | float of any precision; need not be normalised              |
    | labels     | (B,)   | integers                                                    |
    | ref_emb    | (G, D) | what to compare with; without it, the others of the batch   |
    | ref_labels | (G,)   | integers                                                    |

    Args:
        neighbours: of its own class that an image is drawn to.
        margin: around them, which others are kept out of.
        push: weight of keeping others out; 1 - push is that of drawing its own in.
        reduction: mean, sum, or none.

    Raises:
        ValueError: if a setting is out of range.

    Examples:
        Squared distances: 0.4 between the first two, 2.0 and 0.8 from these to the third:

        >>> import torch
        >>> from rankshot.losses import LMNNLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> value = LMNNLoss(margin=0.5, push=0.5)(embeddings, torch.tensor([0, 0, 1]))
        >>> round(value.item(), 4)  # pull 0.5 * 0.4 twice, push 0.5 * (0.5 + 0.4 - 0.8) once, over two images
        0.225
    """

    def __init__(self, neighbours: int = 3, margin: float = 0.5, push: float = 0.5, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.neighbours, self.push = whole("neighbours", neighbours, 1, MOST_NEIGHBOURS), real("push", push, SMALLEST, 1)
        self.margin = positive("margin", margin)

    def of_cosines(self, cosines: Tensor, relevance: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        distances = squared_distances(cosines)
        nearest, which = distances.masked_fill(~relevance, torch.inf).topk(
            min(self.neighbours, relevance.shape[1]), largest=False, sorted=False
        )
        is_target = relevance.gather(1, which)  # a small class has fewer
        target = nearest.where(is_target, 0.0)
        intrudes = (valid & ~relevance)[:, None, :] & is_target[:, :, None]
        push = (self.margin + target[:, :, None] - distances[:, None, :]).where(intrudes, 0.0).clamp(min=0)
        lost = (1 - self.push) * target.sum(-1) + self.push * push.sum((-2, -1))
        return lost, relevance.any(-1)

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"neighbours={self.neighbours}, margin={self.margin:g}, push={self.push:g}"
