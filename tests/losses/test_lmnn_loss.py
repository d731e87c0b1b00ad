"""LMNN against its definition."""

import pytest
import torch
from losses.agreement import agrees, distance, nothing_to_learn, others, same_under_autocast

from rankshot.losses import LMNNLoss


@pytest.mark.parametrize(("neighbours", "margin", "push"), [(1, 0.5, 0.5), (3, 0.2, 0.8), (20, 1.0, 1.0)])
def test_value_and_gradient(neighbours, margin, push, device):
    def definition(embeddings, labels):
        values = []
        for query in range(len(labels)):
            own, foreign = others(labels, query)
            near = sorted((distance(embeddings[query], embeddings[each]) for each in own), key=torch.Tensor.item)[
                :neighbours
            ]
            far = [distance(embeddings[query], embeddings[each]) for each in foreign]
            if near:
                intrusions = sum((margin + one - other).clamp(min=0) for one in near for other in far)
                values.append((1 - push) * sum(near) + push * intrusions)
        return sum(values) / len(values)

    agrees(LMNNLoss(neighbours, margin, push), definition, device)


def test_edges(device):
    same_under_autocast(LMNNLoss(), device)
    nothing_to_learn(LMNNLoss(), device)
    for wrong, told in (({"neighbours": 0}, "neighbours must be"), ({"push": 1.1}, "push must"), ({"margin": 0}, "margin")):
        with pytest.raises(ValueError, match=told):
            LMNNLoss(**wrong)
