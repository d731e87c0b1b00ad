"""The meta-gradient against finite differences, second order and first; all tasks at once against one by one."""

import pytest
import torch
from methods.made import made
from torch import nn

from rankshot.methods import MAML, Context
from rankshot.methods.learner import Learner
from rankshot.models import Conv4, from_pretrained, save_pretrained
from rankshot.models.network import build, wrap
from rankshot.preprocess import Preprocess

SETTINGS = {"tasks": 2, "steps": 2, "rate": 0.3}


STRIDED = {"name": "conv4-strided", "in_channels": 1, "filters": 4}
SHARED_NORM = {"adapt_norm": False}
KINDS = pytest.mark.parametrize(
    "kind",
    [{}, SHARED_NORM, {"embedder": STRIDED}, {"embedder": STRIDED, **SHARED_NORM}],
    ids=["conv4", "shared norm", "strided", "strided, shared norm"],
)


def system_and_batch(**more):
    torch.manual_seed(0)
    model, method = made("maml", batch_size=18, **SETTINGS, **more)
    return model.double(), method, torch.rand(18, 1, 16, 16, dtype=torch.float64)


def is_of_norm(name, weight, kind):
    """Of the blocks: batch norm's are the vectors."""
    return weight.dim() == 1 and name.startswith("network.") and not kind.get("adapt_norm", True)


def meta_loss(model, images, kind):
    """Task by task with plain autograd."""
    lost = []
    for task in images.view(2, 3, 3, 1, 16, 16):
        support, queries = task[:, :1].flatten(0, 1), task[:, 1:].flatten(0, 1)
        weights = model.learner.weights()
        for _ in range(2):
            logits = model.learner.logits(weights, support, 3)[0]
            inner = torch.nn.functional.cross_entropy(logits, torch.arange(3))
            gradients = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
            weights = {
                name: each if is_of_norm(name, each, kind) else each - 0.3 * by
                for (name, each), by in zip(weights.items(), gradients, strict=True)
            }
        logits = model.learner.logits(weights, queries, 3)[0]
        lost.append(torch.nn.functional.cross_entropy(logits, torch.arange(3).repeat_interleave(2)))
    return torch.stack(lost).mean()


@KINDS
def test_all_tasks_at_once(kind):
    model, method, images = system_and_batch(**kind)
    loss, embeddings = method.learn(model, images, torch.zeros(18))
    expected = meta_loss(model, images, kind)
    torch.testing.assert_close(loss, expected)
    assert embeddings is None
    parameters = list(model.parameters())
    torch.testing.assert_close(*(torch.autograd.grad(each, parameters) for each in (loss, expected)))


@KINDS
def test_second_order_gradient_against_finite_differences(kind):
    model, method, images = system_and_batch(**kind)
    method.learn(model, images, torch.zeros(18))[0].backward()
    small = 1e-6
    random = torch.Generator().manual_seed(1)
    for _, parameter in model.named_parameters():
        for number in torch.randint(parameter.numel(), (2,), generator=random):
            place = torch.unravel_index(number, parameter.shape)
            values = []
            for step in (small, -small):
                with torch.no_grad():
                    parameter[place] += step
                values.append(method.learn(model, images, torch.zeros(18))[0].item())
                with torch.no_grad():
                    parameter[place] -= step
            expected = (values[0] - values[1]) / (2 * small)
            assert parameter.grad[place].item() == pytest.approx(expected, rel=1e-3, abs=1e-7)


@KINDS
def test_first_order_is_the_gradient_at_the_adapted_weights(kind):
    model, method, images = system_and_batch(first_order=True, **kind)
    method.learn(model, images, torch.zeros(18))[0].backward()
    expected = {name: torch.zeros_like(each) for name, each in model.learner.weights().items()}
    for task in images.view(2, 3, 3, 1, 16, 16):
        weights = {name: each.detach().requires_grad_() for name, each in model.learner.weights().items()}
        for _ in range(2):
            logits = model.learner.logits(weights, task[:, :1].flatten(0, 1), 3)[0]
            inner = torch.nn.functional.cross_entropy(logits, torch.arange(3))
            gradients = torch.autograd.grad(inner, list(weights.values()))
            weights = {
                name: each if is_of_norm(name, each, kind) else (each - 0.3 * by).detach().requires_grad_()
                for (name, each), by in zip(weights.items(), gradients, strict=True)
            }
        logits = model.learner.logits(weights, task[:, 1:].flatten(0, 1), 3)[0]
        lost = torch.nn.functional.cross_entropy(logits, torch.arange(3).repeat_interleave(2))
        for (name, _), by in zip(weights.items(), torch.autograd.grad(lost, list(weights.values())), strict=True):
            expected[name] += by / 2
    for name, each in model.learner.named_parameters():
        torch.testing.assert_close(each.grad, expected[name], msg=name)


def test_answers():
    model, _, images = system_and_batch(test_steps=4)
    support, labels, queries = images[:6], torch.tensor([0, 1, 0, 1, 0, 1]), images[6:10]
    weights = model.learner.weights()
    for _ in range(4):
        weights = {name: each.detach().requires_grad_() for name, each in weights.items()}
        inner = torch.nn.functional.cross_entropy(model.learner.logits(weights, support, 2)[0], labels)
        gradients = torch.autograd.grad(inner, list(weights.values()))
        weights = {name: each - 0.3 * by for (name, each), by in zip(weights.items(), gradients, strict=True)}
    torch.testing.assert_close(model.answer(support, labels, queries), model.learner.logits(weights, queries, 2)[0])
    with pytest.raises(ValueError, match="made for tasks of up to 3 classes, got 4"):
        model.answer(images[:4], torch.arange(4), queries)


@pytest.mark.parametrize("name", ["maml", "meta-lstm"])
def test_several_episodes_at_once(name):
    torch.manual_seed(0)
    model, _ = made(name, steps=2, batch_size=9 if name == "meta-lstm" else 36)
    model = model.double()
    support, queries, labels = torch.rand(2, 3, 1, 16, 16).double(), torch.rand(2, 4, 1, 16, 16).double(), torch.arange(3)
    found = model.answer_all(support, labels, queries)
    for one, other, expected in zip(support, queries, found, strict=True):
        torch.testing.assert_close(model.answer(one, labels, other), expected)
    assert not torch.allclose(found[0], found[1])


@pytest.mark.parametrize("size", [16, 35])
def test_the_learner_is_conv4_with_a_layer_on_top(size):
    embedder = build({"name": "conv4", "in_channels": 2, "filters": 4}, Preprocess(2, size, size))
    learner, conv4 = Learner(embedder, way=3).double(), Conv4(2, 4).double()
    conv4.load_state_dict(learner.network.state_dict(), strict=False)
    images = torch.rand(5, 2, size, size, dtype=torch.float64)
    logits, statistics = learner.logits(learner.weights(), images, 3)
    torch.testing.assert_close(logits, learner.head(conv4.train()(images)))
    for block, (mean, variance) in zip(list(conv4)[:-1], statistics, strict=True):
        block[1].running_mean.copy_(mean.detach())
        block[1].running_var.copy_(variance.detach())
    others = torch.rand(5, 2, size, size, dtype=torch.float64)
    known, _ = learner.logits(learner.weights(), others, 2, known=statistics)
    torch.testing.assert_close(known, learner.head(conv4.eval()(others))[:, :2])


def test_images_of_another_shape():
    model, _, _ = system_and_batch()
    for shape, complaint in (
        ((3, 1, 32, 32), "another size than 32x32"),
        ((3, 2, 16, 16), "1 channels, got 2"),
        ((3, 1, 15, 16), "at least 16x16 pixels, got 15x16"),
    ):
        with pytest.raises(ValueError, match=complaint):
            model.answer(torch.rand(shape).double(), torch.arange(3), torch.rand(shape).double())


def test_it_has_no_embeddings():
    model, _, images = system_and_batch()
    with pytest.raises(ValueError, match="has no embeddings: ask its `answer`"):
        model(images)


def test_what_is_shared_is_told_when_it_is_saved(tmp_path):
    model, _, images = system_and_batch(**SHARED_NORM)
    save_pretrained(model.float(), tmp_path / "kept")
    opened = from_pretrained(tmp_path / "kept")
    support, queries, labels = images[:3].float(), images[3:6].float(), torch.arange(3)
    torch.testing.assert_close(opened.answer(support, labels, queries), model.answer(support, labels, queries))
    others, _, _ = system_and_batch()
    others.float().load_state_dict(model.state_dict())
    assert not torch.allclose(others.answer(support, labels, queries), model.answer(support, labels, queries))


def test_a_network_without_batch_norm_shares_none():
    context = Context(embedding_dim=2, classes=100, batch_classes=2, batch_size=16)
    embedder = wrap(nn.Flatten(), preprocess=Preprocess(1, 1, 2))
    with pytest.raises(ValueError, match="has no batch norm that tasks could share: leave out adapt_norm"):
        MAML(context, adapt_norm=False).network(embedder)


def test_no_mirror_images():
    mirrored = {"name": "conv4", "in_channels": 1, "filters": 4, "mirror": True}
    with pytest.raises(ValueError, match="learns every task anew sees no mirror images: leave out mirror"):
        made("maml", batch_size=18, embedder=mirrored, **SETTINGS)
