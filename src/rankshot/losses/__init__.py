"""What a training loop calls: loss(embeddings, labels) -> scalar."""

from .by_name import by_name
from .ranking_loss import RankingLoss
from .siamese_loss import SiameseLoss
from .smooth_ap_loss import SmoothAPLoss

__all__ = ["RankingLoss", "SiameseLoss", "SmoothAPLoss", "by_name"]
