"""Losses by name: each is a method to train by, with the settings of its constructor."""

from __future__ import annotations

from typing import Any

from rankshot.registry import Registry

# What a run starts from, by data set: the paper's settings for its own losses, and so for every other one.
PRESETS: dict[str, dict[str, Any]] = {
    "omniglot": {"batch_classes": 16, "batch_size": 128},
    "mini-imagenet": {"batch_classes": 8, "batch_size": 128, "schedule": "step"},
}
# What is best for the losses that optimise average precision (docs/experiments.md).
RECIPE: dict[str, Any] = {"learning_rate": 0.003, "schedule": "cosine"}
ABOUT = {"learning_rate": float, "run_settings": dict, "fine_tuning": dict, "presets": dict}  # see `methods.Method`
LOSSES = Registry("loss", home="rankshot.methods", about=ABOUT)
register = LOSSES.register
