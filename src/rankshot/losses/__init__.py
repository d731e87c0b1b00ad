"""What a training loop calls: loss(embeddings, labels) -> scalar."""

from .by_name import by_name
from .ranking_loss import RankingLoss
from .siamese_loss import SiameseLoss
from .smooth_ap_loss import SmoothAPLoss
from .two_scales import TwoScalesLoss

__all__ = ["RankingLoss", "SiameseLoss", "SmoothAPLoss", "TwoScalesLoss", "by_name"]
