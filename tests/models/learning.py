"""Whether a network learns at all."""

import torch
from torch import nn


def loss_before_and_after(model, dimensions, size, updates):
    """Of a classifier of eight random pictures, at the first update and at the last."""
    images, labels = torch.rand(8, 3, size, size), torch.arange(8) % 2
    head = nn.Linear(dimensions, 2)
    optimiser = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.05)
    losses = []
    for _ in range(updates):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(head(model(images)), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses[0], losses[-1]
