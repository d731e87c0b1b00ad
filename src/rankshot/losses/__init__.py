"""What a training loop calls: loss(embeddings, labels) -> scalar."""

from .by_name import by_name
from .ranking_loss import RankingLoss
from .siamese_loss import SiameseLoss

__all__ = ["RankingLoss", "SiameseLoss", "by_name"]
