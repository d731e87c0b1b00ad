"""Triplets with semi-hard negatives against their definition."""

import pytest
import torch
from losses.agreement import agrees, distance, nothing_to_learn, others, same_under_autocast

from rankshot.losses import TripletLoss


@pytest.mark.parametrize("margin", [0.2, 1.5])
def test_value_and_gradient(margin, device):
    def definition(embeddings, labels):
        values = []
        for anchor in range(len(labels)):
            own, foreign = others(labels, anchor)
            far = [distance(embeddings[anchor], embeddings[each]) for each in foreign]
            for positive in own:
                near = distance(embeddings[anchor], embeddings[positive])
                semi_hard = [each for each in far if each > near]
                values.append((margin + near - (min(semi_hard) if semi_hard else max(far))).clamp(min=0))
        return sum(values) / len(values)

    agrees(TripletLoss(margin), definition, device)


def test_without_a_semi_hard_negative_the_farthest_is_taken():
    embeddings = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    value = TripletLoss(0.5)(embeddings, torch.tensor([0, 0, 1, 2]))
    farthest = [2.0, float(distance(embeddings[1], embeddings[3]))]  # of the two anchors
    assert value.item() == pytest.approx(sum(max(0.0, 0.5 + 4 - each) for each in farthest) / 2, abs=1e-5)


def test_one_class_alone(device):
    embeddings = torch.randn(5, 4, device=device, requires_grad=True)
    value = TripletLoss()(embeddings, torch.zeros(5, dtype=torch.long, device=device))
    value.backward()
    assert value == 0
    assert (embeddings.grad == 0).all()


def test_edges(device):
    same_under_autocast(TripletLoss(), device)
    nothing_to_learn(TripletLoss(), device)
    with pytest.raises(ValueError, match=r"margin must be a number from 1e-09 to 1e[+]09"):
        TripletLoss(float("nan"))
