"""The losses that are compared by fine-tuning, each with two settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Contender:
    """A method with settings: one of rankshot's by its name, or a loss of pytorch-metric-learning.

    own_rate   of what a loss learns itself (proxies), as a multiple of the network's
    """

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    from_pml: str | None = None
    miner: float | None = None
    own_rate: float = 1.0


WIDE = {"epsilon": 0.003, "smoothing": 0.02}
# Two settings were found on birds 51-100 by networks that were taught birds 1-50 (results/trials/birds-51-100): these, and
# `map-dlm-coarse`, in which the paper's objective has as much weight as the fine one, or more.
SMOOTHED = {"epsilon": 0.003, "smoothing": 0.05}


def _paper(method: str, more: dict[str, float]) -> tuple[Contender, Contender]:
    """As in the paper: no smoothing, no second scale."""
    exact = {"smoothing": 0.0, "coarse_weight": 0.0, **more}
    return Contender(method, {"alpha": 10.0, **exact}), Contender(method, {"alpha": 1.0, **exact})


METHODS: dict[str, tuple[Contender, Contender]] = {
    "map-dlm": (Contender("map-dlm", WIDE), Contender("map-dlm", {**WIDE, "coarse_weight": 0.3, "coarse_alpha": 1.0})),
    "map-dlm-smoothed": (
        Contender("map-dlm", SMOOTHED),
        Contender("map-dlm", {**SMOOTHED, "coarse_weight": 1.0, "coarse_alpha": 1.0}),
    ),
    "map-dlm-coarse": (
        Contender("map-dlm", {**WIDE, "coarse_weight": 1.0}),
        Contender("map-dlm", {**WIDE, "coarse_weight": 3.0}),
    ),
    "map-ssvm": (Contender("map-ssvm"), Contender("map-ssvm", {"smoothing": 0.02, "alpha": 1.0})),
    "map-dlm-paper": _paper("map-dlm", {"epsilon": 1.0}),
    "map-ssvm-paper": _paper("map-ssvm", {}),
    "smooth-ap": (Contender("smooth-ap", {"temperature": 0.01}), Contender("smooth-ap", {"temperature": 0.02})),
    "fast-ap": (Contender("fast-ap", {"bins": 10}), Contender("fast-ap", {"bins": 20})),
    "supcon": (Contender("supcon", {"temperature": 0.1}), Contender("supcon", {"temperature": 0.05})),
    "triplet": (Contender("triplet", {"margin": 0.2}), Contender("triplet", {"margin": 0.1})),
    "prototypical": (Contender("prototypical", {"scale": 0.1}), Contender("prototypical", {"scale": 0.01})),
    "proxy-anchor": (
        Contender("own", {"margin": 0.1, "alpha": 32}, "ProxyAnchorLoss", own_rate=100),
        Contender("own", {"margin": 0.1, "alpha": 32}, "ProxyAnchorLoss", own_rate=10),
    ),
    "multi-similarity": (
        Contender("own", {"alpha": 2, "beta": 50, "base": 0.5}, "MultiSimilarityLoss"),
        Contender("own", {"alpha": 2, "beta": 50, "base": 0.5}, "MultiSimilarityLoss", miner=0.1),
    ),
}


class FromPML(nn.Module):
    """A loss of pytorch-metric-learning, with its miner."""

    def __init__(self, contender: Contender, classes: int, width: int) -> None:
        super().__init__()
        from pytorch_metric_learning import losses, miners

        kind = getattr(losses, str(contender.from_pml))
        proxies = {"num_classes": classes, "embedding_size": width} if "Proxy" in str(contender.from_pml) else {}
        self.loss = kind(**contender.settings, **proxies)
        self.miner = miners.MultiSimilarityMiner(contender.miner) if contender.miner is not None else None

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        pairs = self.miner(embeddings, labels) if self.miner is not None else None
        found: Tensor = self.loss(embeddings, labels, pairs)
        return found


def check_installed() -> None:
    """Two of them come from a package of their own."""
    if find_spec("pytorch_metric_learning") is None:
        raise ModuleNotFoundError("ProxyAnchor and MultiSimilarity need a package: pip install pytorch-metric-learning")
