"""Classifiers over the training classes, against their definitions."""

import pytest
import torch
from losses.agreement import agrees, same_under_autocast

from rankshot.losses import ClassifierLoss


@pytest.mark.parametrize("cosine", [False, True])
def test_value_and_gradient(cosine, device):
    loss = ClassifierLoss(4, 6, cosine=cosine, scale=3.0).double().to(device)

    def definition(embeddings, labels):
        values = []
        for embedding, label in zip(embeddings, labels, strict=True):
            scores = []
            for row in range(6):
                weight = loss.head.weight[row]
                if cosine:
                    scores.append(3 * torch.dot(embedding, weight) / embedding.norm() / weight.norm())
                else:
                    scores.append(torch.dot(embedding, weight) + loss.head.bias[row])
            values.append(-(scores[label].exp() / sum(each.exp() for each in scores)).log())
        return sum(values) / len(values)

    agrees(loss, definition, device)
    assert (loss.head.bias is None) == cosine


def test_edges(device):
    same_under_autocast(ClassifierLoss(4, 3, cosine=True).to(device), device)
    same_under_autocast(ClassifierLoss(4, 3).to(device), device)
    for wrong in (-1, 3, -100):
        with pytest.raises(ValueError, match=f"labels must be from 0 to 2: Target {wrong} is out of bounds"):
            ClassifierLoss(4, 3)(torch.rand(2, 4), torch.tensor([0, wrong]))
    with pytest.raises(ValueError, match=r"scale must be a number from 1e-09 to 1e[+]09"):
        ClassifierLoss(4, 3, cosine=True, scale=0)
