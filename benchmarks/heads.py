"""A head that learns from embeddings that are there already."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rankshot.data.augmentation import OF_IMAGE, RANDOM_NUMBERS
from rankshot.methods import Method
from rankshot.randomness import generator_for
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
    device = views.device
    groups = [{"params": list(model.parameters()), "lr": rate}]
    if own := list(method.parameters()):
        groups.append({"params": own, "lr": rate * own_rate})
    optimiser = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    step, sampler = Step(model, method, optimiser, EmbeddedOnce(views), labels), method.sampler(labels.cpu(), seed)
    for update in range(updates):
        indices = sampler.draw(update).to(device)
        noise = torch.zeros(len(indices), RANDOM_NUMBERS)
        noise[:, :OF_IMAGE] = torch.rand(len(indices), OF_IMAGE, generator=generator_for(seed, "noise", update))
        step(Batch(indices, noise.to(device)))
        schedule.step()
