"""What a training loop calls: loss(embeddings, labels) -> scalar.

Embeddings are (B, D) float, labels (B,) integers. Losses are called as those of pytorch-metric-learning, with `ref_emb`
and `ref_labels` for references. `CrossBatchMemory` and `GatheredLoss` are built around another loss.
"""

from .classifier_loss import ClassifierLoss
from .cross_batch_memory import CrossBatchMemory
from .fast_ap_loss import FastAPLoss
from .gathered import GatheredLoss
from .lmnn_loss import LMNNLoss
from .nca_loss import NCALoss
from .ranking_loss import RankingLoss
from .registry import register
from .siamese_loss import SiameseLoss
from .smooth_ap_loss import SmoothAPLoss
from .supcon_loss import SupConLoss
from .triplet_loss import TripletLoss

__all__ = [
    "ClassifierLoss",
    "CrossBatchMemory",
    "FastAPLoss",
    "GatheredLoss",
    "LMNNLoss",
    "NCALoss",
    "RankingLoss",
    "SiameseLoss",
    "SmoothAPLoss",
    "SupConLoss",
    "TripletLoss",
    "register",
]
