"""NCA against its definition."""

import pytest
from losses.agreement import agrees, distance, nothing_to_learn, others, same_under_autocast

from rankshot.losses import NCALoss


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_value_and_gradient(temperature, device):
    def definition(embeddings, labels):
        values = []
        for query in range(len(labels)):
            own, foreign = others(labels, query)
            if own:
                near = {
                    each: (-distance(embeddings[query], embeddings[each]) / temperature).exp() for each in own + foreign
                }
                values.append(-(sum(near[each] for each in own) / sum(near.values())).log())
        return sum(values) / len(values)

    agrees(NCALoss(temperature), definition, device)


def test_edges(device):
    same_under_autocast(NCALoss(), device)
    nothing_to_learn(NCALoss(), device)
    with pytest.raises(ValueError, match=r"temperature must be a number from 1e-09 to 1e[+]09, got 0"):
        NCALoss(0)
