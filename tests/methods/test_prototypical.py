"""Prototypes against their definition."""

import pytest
import torch
from methods.made import made


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_scores_are_distances_to_the_means(device, scale):
    model, _ = made("prototypical", scale=scale)
    support, queries = torch.randn(2, 3, 4, 5, device=device), torch.randn(2, 6, 5, device=device)
    scores = model.class_scores(support, queries)
    for episode in range(2):
        for query in range(6):
            for label in range(3):
                prototype = sum(support[episode, label]) / 4
                expected = -sum((one - other) ** 2 for one, other in zip(queries[episode, query], prototype, strict=True))
                torch.testing.assert_close(scores[episode, query, label], scale * expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_the_loss_is_that_of_the_rule(scale):
    model, method = made("prototypical", scale=scale)
    images = torch.rand(12, 1, 16, 16)
    loss, embeddings = method.learn(model, images, torch.arange(3).repeat_interleave(4))
    given = embeddings.detach().requires_grad_()
    parts = given.view(3, 4, -1)
    lost = []
    for label in range(3):
        for query in parts[label, 1:]:
            chances = (-scale * (query - parts[:, 0]).square().sum(-1)).softmax(-1)
            lost.append(-chances[label].log())
    expected = torch.stack(lost).mean()
    torch.testing.assert_close(loss, expected)
    found = torch.autograd.grad(loss, embeddings)[0]
    torch.testing.assert_close(found, torch.autograd.grad(expected, given)[0], rtol=1e-4, atol=1e-5)
