"""Supervised contrastive learning against its definition."""

import pytest
import torch
from losses.agreement import agrees, nothing_to_learn, others, same_under_autocast

from rankshot.losses import SupConLoss


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_value_and_gradient(temperature, device):
    def definition(embeddings, labels):
        unit = [each / each.norm() for each in embeddings]
        values = []
        for query in range(len(labels)):
            own, foreign = others(labels, query)
            if own:
                near = {each: (torch.dot(unit[query], unit[each]) / temperature).exp() for each in own + foreign}
                values.append(-sum((near[each] / sum(near.values())).log() for each in own) / len(own))
        return sum(values) / len(values)

    agrees(SupConLoss(temperature), definition, device)


def test_edges(device):
    same_under_autocast(SupConLoss(), device)
    nothing_to_learn(SupConLoss(), device)
    with pytest.raises(ValueError, match=r"temperature must be a number from 1e-09 to 1e[+]09, got -1"):
        SupConLoss(-1)
