"""A head that learns from embeddings that are there already."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankshot.data.augmentation import random_numbers
from rankshot.methods import Method
from rankshot.training.batch import Batch
from rankshot.training.inputs import EmbeddedOnce
from rankshot.training.step import Step


def learn(
    model: nn.Module,
    method: Method,
    views: Tensor,
    labels: Tensor,
    *,
    updates: int,
    rate: float,
    own_rate: float = 1.0,
    seed: int = 0,
) -> None:
    """Adam with a cosine schedule, from (n, V, D) views of images with labels (n,).

    own_rate   of what the method learns itself, as a multiple of the head's
    """
    groups = [{"params": list(model.parameters()), "lr": rate}]
    if own := list(method.parameters()):
        groups.append({"params": own, "lr": rate * own_rate})
    optimiser = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    step, sampler = Step(model, method, optimiser, EmbeddedOnce(views), labels), method.sampler(labels.cpu(), seed)
    for update in range(updates):
        indices = sampler.draw(update).to(views.device)
        step(Batch(indices, random_numbers(("flip",), labels[indices], seed, update)))  # by which it picks its views
        schedule.step()
