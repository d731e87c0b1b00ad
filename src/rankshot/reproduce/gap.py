"""Where the paper's recipe does not give the paper's figures: the authors' settings one by one, and all of them together.

Most of the gap is that of mAP-SSVM with alpha 1 on mini-ImageNet, which is the test bed. The names of the runs:

    mini-imagenet/gap/NAME/SEED
"""

from __future__ import annotations

from typing import Any

from rankshot.training import TrainConfig

from .job import Run
from .plan import BENCHMARKS, QUESTIONS

DATA = "mini-imagenet"
OURS: dict[str, Any] = {  # conv4-tensorflow with these is conv4
    "network": "conv4-tensorflow",
    "norm_scale": True,
    "norm_epsilon": 1e-5,
    "first_weights": "torch",
    "largest_pixel": 1.0,
}
LAST: dict[str, Any] = {"validate_every": 0}
PADDED: dict[str, Any] = {"method": "map-padded", "framework": "ssvm", "alpha": 1.0}
THEIRS: dict[str, Any] = {"network": "conv4-tensorflow", **LAST}
# What is changed, in words -> settings; of mAP-SSVM with alpha 1, if the method is not named.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "as-it-is": ("nothing", {}),
    "last-weights": ("the last weights instead of the best", LAST),
    "no-norm-scale": ("batch norm learns no scale", {**OURS, "norm_scale": False}),
    "norm-epsilon": ("epsilon of batch norm 0.001", {**OURS, "norm_epsilon": 1e-3}),
    "xavier": ("Xavier initialisation", {**OURS, "first_weights": "xavier"}),
    "pixels-255": ("pixels from 0 to 255", {**OURS, "largest_pixel": 255.0}),
    "float32": ("computed in float32", {"precision": "float32"}),
    "padded": ("lists padded with the first image", PADDED),
    "all": ("all of these except float32", {**THEIRS, **PADDED}),
    "all-but-padding": ("all of these except float32 and padding", THEIRS),
    "dlm-as-it-is": ("mAP-DLM, alpha 10: nothing", {"method": "map-dlm"}),
    "dlm-all": ("mAP-DLM, alpha 10: all except float32", {**THEIRS, **PADDED, "framework": "dlm", "alpha": 10.0}),
}
SEEDS = {"as-it-is": (0, 1), "all": (0, 1), "dlm-all": (0, 1)}


def gap() -> list[Run]:
    """The most telling ones first."""
    return [
        Run(f"{DATA}/gap/{name}/{seed}", config_of(changes, seed), QUESTIONS)
        for name, (_, changes) in VARIANTS.items()
        for seed in SEEDS.get(name, (0,))
    ]


def config_of(changes: dict[str, Any], seed: int) -> TrainConfig:
    """The paper's recipe with some of the authors' settings."""
    method = changes.get("method", "map-ssvm")
    benchmark = BENCHMARKS[DATA]
    if method == "map-padded":
        recipe = {name: benchmark.paper["map-ssvm"][name] for name in ("schedule", "updates")}
        return benchmark.base.changed(seed=seed, **{**recipe, "epsilon": 1.0, **changes})
    alpha = {} if method == "map-dlm" else {"alpha": 1.0}
    others = {name: value for name, value in changes.items() if name != "method"}
    return benchmark.config("paper", method, seed, **{**alpha, **others})
