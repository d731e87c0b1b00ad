"""The mathematics: scores and relevance in; metrics, rankings and weights out. Pure functions, torch only.

Scores are (Q, G) float, one row a query; relevance is (Q, G) bool; `valid` (Q, G) bool tells which items are ranked at
all. `relevance_of` makes both masks from labels. A ranking is one integer an item: its opponents above (see
`true_ranking`).
"""

from .accumulated import RetrievalMetric
from .inference import loss_augmented_ranking, predicted_ranking, true_ranking
from .metrics import (
    Metric,
    auc,
    average_precision,
    evaluate,
    get_metric,
    loss_table,
    ndcg,
    precision_at,
    reciprocal_rank,
    register,
)
from .objectives import Objective, dlm, ssvm
from .pool import relevance_of

__all__ = [
    "Metric",
    "Objective",
    "RetrievalMetric",
    "auc",
    "average_precision",
    "dlm",
    "evaluate",
    "get_metric",
    "loss_augmented_ranking",
    "loss_table",
    "ndcg",
    "precision_at",
    "predicted_ranking",
    "reciprocal_rank",
    "register",
    "relevance_of",
    "ssvm",
    "true_ranking",
]
