"""The losses under the names of the paper's tables, for command lines and configs."""

from __future__ import annotations

from inspect import signature

from torch import nn

from .ranking_loss import RankingLoss
from .siamese_loss import SiameseLoss
from .smooth_ap_loss import SmoothAPLoss
from .two_scales import FAR_ALPHA, TwoScalesLoss

NAMES = ("map-dlm", "map-ssvm", "siamese", "smooth-ap")


def by_name(
    name: str,
    dimensions: int,
    *,
    metric: str = "ap",
    epsilon: float = 1.0,
    alpha: float | None = None,
    sign: int = +1,
    smoothing: float = 0.0,
    samples: int = 4,
    wide: float = 0.0,
    wide_alpha: float = FAR_ALPHA,
    temperature: float = 0.01,
) -> nn.Module:
    """ "map-dlm" and "map-ssvm" with any metric; "siamese", for embeddings of `dimensions`; "smooth-ap" of a temperature.

    An option that a loss does not have must be left at its default.

    >>> by_name("map-dlm", 64, alpha=3.0)
    RankingLoss(metric='ap', framework='dlm', epsilon=1, alpha=3, sign=+1, reduction='mean')
    """
    if name not in NAMES:
        raise ValueError(f"unknown method {name!r}: there is {', '.join(map(repr, NAMES))}")
    options: dict[str, object] = {"metric": metric, "epsilon": epsilon, "alpha": alpha, "sign": sign}
    options |= {"smoothing": smoothing, "samples": samples, "wide": wide, "wide_alpha": wide_alpha}
    if name != "smooth-ap" and temperature != 0.01:
        raise ValueError(f"{name} has no temperature: that is for 'smooth-ap'")
    if name in ("map-dlm", "map-ssvm"):
        framework = name.removeprefix("map-")
        near = RankingLoss(metric, framework, epsilon, alpha, sign, smoothing=smoothing, samples=samples)
        return TwoScalesLoss(near, wide, wide_alpha) if wide else near
    for option, value in options.items():
        if value != signature(by_name).parameters[option].default:
            raise ValueError(f"{name} has no {option}: that is for 'map-dlm' and 'map-ssvm', got {value!r}")
    return SiameseLoss(dimensions) if name == "siamese" else SmoothAPLoss(temperature)
