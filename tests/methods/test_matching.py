"""Attention against its definition; full context embeddings against their equations."""

import pytest
import torch
from methods.made import made


def attention_of(query, support, scale):
    cosines = torch.stack([scale * torch.dot(query, each) / query.norm() / each.norm() for each in support])
    return cosines.exp() / cosines.exp().sum()


@pytest.mark.parametrize("scale", [1, 30])
def test_a_class_gets_the_attention_of_its_images(device, scale):
    model, _ = made("matching", scale=scale)
    support, queries = torch.randn(2, 3, 2, 5, device=device), torch.randn(2, 4, 5, device=device)
    scores = model.class_scores(support, queries)
    for episode in range(2):
        for query in range(4):
            attention = attention_of(queries[episode, query], support[episode].flatten(0, 1), scale).view(3, 2).sum(-1)
            torch.testing.assert_close(scores[episode, query], attention.log(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(2, 4, device=device))


def lstm_step(cell, suffix, told, state, memory):
    """The equations of an LSTM, in torch's order of gates."""
    weights = [getattr(cell, f"{kind}{suffix}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    gates = weights[0] @ told + weights[2] + weights[1] @ state + weights[3]
    enter, forget, new, out = gates.chunk(4)
    memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
    return out.sigmoid() * memory.tanh(), memory


@pytest.mark.parametrize("scale", [1, 30])
def test_full_context(scale):
    model, _ = made("matching-fce", reads=3, scale=scale)
    support, queries = torch.randn(1, 3, 2, 4), torch.randn(1, 5, 4)
    images = support[0].flatten(0, 1)
    both = torch.zeros_like(images)
    for suffix, order in (("_l0", range(6)), ("_l0_reverse", range(5, -1, -1))):
        state = memory = torch.zeros(4)
        for place in order:
            state, memory = lstm_step(model.of_support, suffix, images[place], state, memory)
            both[place] += state
    in_context = images + both
    for query in range(5):
        plain = queries[0, query]
        state = memory = torch.zeros(4)
        for _ in range(3):
            weights = (in_context @ state).softmax(0)
            seen = sum(weight * each for weight, each in zip(weights, in_context, strict=True))
            state, memory = lstm_step(model.of_query, "", torch.cat([plain, seen]), state, memory)
            state = state + plain
        expected = attention_of(state, in_context, scale).view(3, 2).sum(-1).log()
        torch.testing.assert_close(model.class_scores(support, queries)[0, query], expected, rtol=1e-4, atol=1e-4)
