"""FastAP against its definition, and where bins make no difference."""

import pytest
import torch
from losses.agreement import agrees, distance, nothing_to_learn, others, same_under_autocast

from rankshot.losses import FastAPLoss


@pytest.mark.parametrize("bins", [1, 10, 37])
def test_value_and_gradient(bins, device):
    def definition(embeddings, labels):
        values = []
        for query in range(len(labels)):
            own, foreign = others(labels, query)
            if not own:
                continue
            relevant, everyone = [0.0] * (bins + 1), [0.0] * (bins + 1)
            for each in own + foreign:
                for place in range(bins + 1):
                    away = (distance(embeddings[query], embeddings[each]) - 4 * place / bins).abs()
                    share = (1 - away * bins / 4).clamp(min=0)
                    everyone[place] = everyone[place] + share
                    relevant[place] = relevant[place] + share * (each in own)
            precision = 0.0
            for place in range(bins + 1):
                if sum(everyone[: place + 1]) > 0:
                    so_far = sum(relevant[: place + 1]) / sum(everyone[: place + 1])
                    precision = precision + relevant[place] * so_far / len(own)
            values.append(1 - precision)
        return sum(values) / len(values)

    agrees(FastAPLoss(bins), definition, device)


def test_a_perfect_ranking_loses_nothing():
    embeddings = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    assert FastAPLoss(4)(embeddings, torch.tensor([0, 0, 1, 1])).item() == pytest.approx(0.0, abs=1e-6)
    assert FastAPLoss(4)(embeddings, torch.tensor([0, 1, 0, 1])).item() == pytest.approx(2 / 3, abs=1e-6)


def test_one_class_alone(device):
    embeddings = torch.randn(5, 4, device=device, requires_grad=True)
    value = FastAPLoss()(embeddings, torch.zeros(5, dtype=torch.long, device=device))
    value.backward()
    assert value == 0
    assert (embeddings.grad == 0).all()


def test_edges(device):
    same_under_autocast(FastAPLoss(), device)
    nothing_to_learn(FastAPLoss(), device)
    with pytest.raises(ValueError, match="bins must be a whole number from 1 to 1,000, got 0"):
        FastAPLoss(0)
