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


def in_context_by_torch(model, support, queries):
    """With the LSTM cell of torch, which gets the query itself in every read."""
    both, _ = model.of_support(support)
    support = support + both[..., :4] + both[..., 4:]
    plain = queries.flatten(0, 1)
    state, memory = torch.zeros_like(plain), torch.zeros_like(plain)
    for _ in range(model.reads):
        seen = (state.view_as(queries) @ support.mT).softmax(-1) @ support
        state, memory = model.of_query(torch.cat([plain, seen.flatten(0, 1)], -1), (state, memory))
        state = state + plain
    return support, state.view_as(queries)


@pytest.mark.parametrize(("precision", "error"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_reading_and_its_gradients_are_those_of_torch_s_cell(device, precision, error):
    model, _ = made("matching-fce", reads=4)
    model.to(device)
    support, queries = (torch.randn(2, count, 4, device=device, requires_grad=True) for count in (6, 5))
    learned = [support, queries, *model.of_support.parameters(), *model.of_query.parameters()]
    expected = in_context_by_torch(model, support, queries)
    weights = [torch.randn_like(each) for each in expected]
    found = model.in_context(support, queries, precision)
    gradients, expected_gradients = (
        torch.autograd.grad(sum((each * weight).sum() for each, weight in zip(both, weights, strict=True)), learned)
        for both in (found, expected)
    )
    for one, other in zip([*found, *gradients], [*expected, *expected_gradients], strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() <= error * other.norm()


def test_what_learns_in_half_precision_reads_in_it():
    images, labels = torch.rand(12, 1, 16, 16), torch.arange(3).repeat_interleave(4)
    model, method = made("matching-fce", batch_classes=3, batch_size=12)
    asked = []
    model.in_context = lambda *arguments: asked.append(arguments[2]) or type(model).in_context(model, *arguments)
    exact, _ = method.learn(model, images, labels)
    method.precision = torch.bfloat16
    coarse, _ = method.learn(model, images, labels)
    assert asked == [torch.float32, torch.bfloat16]
    assert coarse.item() == pytest.approx(exact.item(), rel=0.03)
    assert coarse.item() != exact.item()


def test_numbers_of_any_precision():
    """A network of doubles computes in doubles, with gradients as exact; one of halves computes too."""
    model, _ = made("matching-fce", reads=2, scale=3.0)
    support, queries = torch.randn(1, 2, 2, 4), torch.randn(1, 3, 4)
    exact = model.double().class_scores(support.double(), queries.double())
    inputs = support.double().requires_grad_(), queries.double().requires_grad_()
    assert torch.autograd.gradcheck(model.class_scores, inputs)
    halves = model.bfloat16().class_scores(support.bfloat16(), queries.bfloat16())
    torch.testing.assert_close(halves.double(), exact, atol=0.1, rtol=0.1)


def test_what_wraps_a_network_learns_as_it_does():
    images, labels = torch.rand(12, 1, 16, 16), torch.arange(3).repeat_interleave(4)
    model, method = made("matching-fce", batch_classes=3, batch_size=12)
    expected, _ = method.learn(model, images, labels)
    loss, _ = method.learn(torch.compile(model, backend="eager"), images, labels)
    torch.testing.assert_close(loss, expected)
