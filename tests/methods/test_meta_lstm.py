"""One step of the meta-learner by hand, its batch norm, and what its gradient goes through."""

import math
from functools import reduce

import pytest
import torch
from methods.made import made

from rankshot.methods.meta_lstm import Updater, moved, pre_processed


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def told(value):
    return (
        (math.log(abs(value)) / 10, math.copysign(1, value)) if abs(value) >= math.exp(-10) else (-1, math.exp(10) * value)
    )


@pytest.mark.parametrize("value", [3.0, -0.2, 1e-4, 4.6e-5, 4.5e-5, -1e-9, 0.0])
def test_pre_processing(value):
    found = pre_processed(torch.tensor([value], dtype=torch.float64))[0].tolist()
    assert found == pytest.approx(told(value), rel=1e-9)


def test_a_step_by_hand():
    torch.manual_seed(0)
    updater = Updater().double()
    theta, gradient, loss = (
        torch.tensor([0.3, -0.1]).double(),
        torch.tensor([0.05, -2e-6]).double(),
        torch.tensor(1.7).double(),
    )
    states = updater.start(theta)
    weights = {name: each.detach().tolist() for name, each in updater.named_parameters()}
    by_hand = [{"h": [0.0] * 20, "c": [0.0] * 20, "forget": 0.0, "input": 0.0, "theta": float(each)} for each in theta]
    for _ in range(2):
        theta, states = updater(theta, gradient, loss, states)
        for place, own in enumerate(by_hand):
            inputs = [*told(float(gradient[place])), *told(float(loss))]
            gates = []
            for row in range(80):
                value = weights["lstm.bias_ih"][row] + weights["lstm.bias_hh"][row]
                value += sum(w * x for w, x in zip(weights["lstm.weight_ih"][row], inputs, strict=True))
                value += sum(w * x for w, x in zip(weights["lstm.weight_hh"][row], own["h"], strict=True))
                gates.append(value)
            for unit in range(20):
                enter, forget, new, out = (gates[20 * part + unit] for part in range(4))
                own["c"][unit] = sigmoid(forget) * own["c"][unit] + sigmoid(enter) * math.tanh(new)
                gates[unit] = sigmoid(out) * math.tanh(own["c"][unit])
            own["h"] = gates[:20]
            for gate in ("forget", "input"):
                seen = [*own["h"], own["theta"], own[gate]]
                value = sum(w * x for w, x in zip(weights[f"{gate}.weight"][0], seen, strict=True))
                own[gate] = sigmoid(value + weights[f"{gate}.bias"][0])
            own["theta"] = own["forget"] * own["theta"] - own["input"] * float(gradient[place])
        assert theta.tolist() == pytest.approx([own["theta"] for own in by_hand], rel=1e-9)


def test_it_begins_as_gradient_descent():
    updater = Updater()
    theta, gradient = torch.tensor([0.5]), torch.tensor([0.1])
    after, _ = updater(theta, gradient, torch.tensor(1.0), updater.start(theta))
    assert 0.97 * 0.5 - 0.02 * 0.1 < after.item() < 0.5


def test_gradients_are_given_and_the_rest_is_learned():
    torch.manual_seed(0)
    model, method = made("meta-lstm", steps=2, batch_size=9)
    model = model.double()
    images = torch.rand(9, 1, 16, 16, dtype=torch.float64)
    support, queries = images.view(3, 3, 1, 16, 16)[:, :1].flatten(0, 1), images.view(3, 3, 1, 16, 16)[:, 1:].flatten(0, 1)
    method.learn(model, images, torch.zeros(9))[0].backward()
    found = {name: each.grad.clone() for name, each in model.named_parameters()}
    model.zero_grad()
    first = model.learner.weights()
    theta = torch.cat([each.flatten() for each in first.values()])
    states = model.updater.start(theta)
    for _ in range(2):
        now = theta.detach().requires_grad_()
        logits = model.learner.logits(model._named(now, first), support, 3)[0]
        loss = torch.nn.functional.cross_entropy(logits, torch.arange(3))
        theta, states = model.updater(theta, torch.autograd.grad(loss, now)[0], loss.detach(), states)
    logits = model.learner.logits(model._named(theta, first), queries, 3)[0]
    torch.nn.functional.cross_entropy(logits, torch.arange(3).repeat_interleave(2)).backward()
    for name, each in model.named_parameters():
        torch.testing.assert_close(found[name], each.grad, msg=name)
    assert found["updater.lstm.weight_ih"].abs().sum() > 0


def test_at_test_a_query_does_not_depend_on_the_others():
    torch.manual_seed(0)
    model, _ = made("meta-lstm", steps=3, batch_size=9)
    images, labels = torch.rand(12, 1, 16, 16), torch.arange(3)
    together = model.answer(images[:3], labels, images[3:])
    alone = torch.cat([model.answer(images[:3], labels, each[None]) for each in images[3:]])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="made for tasks of up to 3 classes, got 4"):
        model.answer(images[:4], torch.arange(4), images[4:])


def test_the_statistics_are_a_running_mean_over_the_steps():
    torch.manual_seed(0)
    support, labels = torch.rand(3, 1, 16, 16), torch.arange(3)
    values = []
    for steps in (0, 1, 2):  # the weights that each of three steps begins with
        torch.manual_seed(0)
        model, _ = made("meta-lstm", steps=max(steps, 1), batch_size=9)
        model.updater.input.bias.data.fill_(2.0)  # large steps, so that they differ
        weights = model.learned(support[None], labels, 3)[0] if steps else {}
        first = weights["network.0.0.weight"][0] if steps else model.learner.weights()["network.0.0.weight"]
        values.append(torch.nn.functional.conv2d(support, first, padding=1))
    model.steps = 3
    mean, variance = (each[0] for each in reduce(moved, model.learned(support[None], labels, 3)[1])[0])
    counts = (0.05 * 0.05, 0.95 * 0.05, 0.95)
    means, variances = zip(*((each.mean((0, 2, 3)), each.var((0, 2, 3), correction=0)) for each in values), strict=True)
    torch.testing.assert_close(mean, sum(count * each for count, each in zip(counts, means, strict=True)))
    torch.testing.assert_close(variance, sum(count * each for count, each in zip(counts, variances, strict=True)))
    assert not torch.allclose(values[0], values[2], rtol=1e-2)
