"""What a training loop calls: loss(embeddings, labels) -> scalar."""

from .ranking_loss import RankingLoss
from .siamese_loss import SiameseLoss

__all__ = ["RankingLoss", "SiameseLoss"]
