"""What a training loop calls: loss(embeddings, labels) -> scalar."""

from .ranking_loss import RankingLoss

__all__ = ["RankingLoss"]
