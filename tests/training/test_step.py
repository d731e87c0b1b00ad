"""One update is what plain PyTorch does; recorded as a CUDA graph it is the same."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rankshot.data.augmentation import RANDOM_NUMBERS
from rankshot.methods import METHODS, Context, make_method
from rankshot.models.network import build
from rankshot.preprocess import Preprocess
from rankshot.training.batch import Batch
from rankshot.training.inputs import Pictures
from rankshot.training.optimiser import make_optimiser, set_learning_rate
from rankshot.training.sections import OptimiserConfig
from rankshot.training.state import live_tensors
from rankshot.training.step import GraphedStep, Step, repeatable, seconds_an_update

EMBEDDER = {"name": "conv4", "in_channels": 1, "filters": 8}


def parts(device, name, augment=()):
    torch.manual_seed(0)
    tasks = {"tasks": 2} if name in ("maml", "memory") else {}
    embedder = build(EMBEDDER, Preprocess(1, 16, 16))
    method = make_method(METHODS.choose(name, tasks), Context(embedder.embedding_dim, 10, 4, 24)).to(device)
    model = method.network(embedder).to(device)
    images = torch.randint(0, 256, (60, 1, 16, 16), dtype=torch.uint8).to(device)
    labels = (torch.arange(60) // 6).to(device)
    optimiser = make_optimiser(OptimiserConfig(), model, method, 1e-2, torch.device(device))
    step = Step(model, method, optimiser, Pictures(images, augment), labels)
    sampler = method.sampler(labels, seed=1)
    return step, [Batch(sampler.draw(number), torch.rand(24, RANDOM_NUMBERS, device=device)) for number in range(6)]


@pytest.mark.parametrize("name", ["map-dlm", "siamese"])
def test_against_a_plain_loop(device, name, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # convolutions in full precision, in a fixed order
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    step, batches = parts(device, name)
    plain, _ = parts(device, name)
    optimiser = torch.optim.Adam([*plain.model.parameters(), *plain.method.parameters()], lr=1e-2)
    for number, batch in enumerate(batches):
        rate = 1e-2 / (1 + number)
        set_learning_rate(step.optimiser, rate)
        value, embeddings = step(batch)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        expected = plain.model(plain.inputs.images[batch.indices].float() / 255)
        loss = plain.method.loss(expected, plain.labels[batch.indices])
        loss.backward()
        optimiser.step()
        torch.testing.assert_close(embeddings, expected.detach(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(value, loss.detach(), rtol=1e-3, atol=1e-4)
    expected = dict(plain.model.named_parameters())
    for key, each in step.model.named_parameters():
        torch.testing.assert_close(each, expected[key], rtol=1e-3, atol=1e-3, msg=key)


class NothingFromTheHost(TorchDispatchMode):
    """Refuses what a CUDA graph cannot record: numbers from Python or back to it, sizes that depend on them."""

    FORBIDDEN = ("aten.lift_fresh", "aten._local_scalar_dense", "aten.nonzero", "aten._unique", "aten.masked_select")

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        assert not str(function).startswith(self.FORBIDDEN), function
        return function(*arguments, **(keywords or {}))


@pytest.mark.parametrize("name", list(METHODS))
def test_an_update_can_be_recorded(name):
    """As far as a CPU can tell."""
    step, batches = parts("cpu", name, augment=("flip", "crop"))
    step.optimiser.step = lambda: None  # torch's own: on a GPU it is another one
    step(batches[0])
    with NothingFromTheHost():
        step(batches[1])


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(METHODS))
def test_a_graph_replays_the_same_updates(name, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    (eager, batches), (recorded, _) = (parts("cuda", name, augment=("flip", "crop")) for _ in range(2))
    state = live_tensors(recorded.model, recorded.method, recorded.optimiser)
    before = {key: each.clone() for key, each in state.items()}
    graphed = GraphedStep(recorded, state, batches[0])
    assert all(torch.equal(each, before[key]) for key, each in state.items()), "warming up left a trace"
    expected = live_tensors(eager.model, eager.method, eager.optimiser)
    for number, batch in enumerate(batches):
        for key, each in expected.items():  # update by update: Adam makes much of the smallest difference
            state[key].copy_(each)
        for step in (eager, recorded):
            set_learning_rate(step.optimiser, 1e-3 / (1 + number))
        value, embeddings = eager(batch)
        graph_value, graph_embeddings = graphed(batch)
        if embeddings is not None:
            torch.testing.assert_close(graph_embeddings, embeddings, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(graph_value, value, rtol=1e-2, atol=1e-3)
        for key, each in expected.items():
            torch.testing.assert_close(state[key], each, rtol=1e-2, atol=2e-3, msg=key)


@pytest.mark.parametrize("name", ["map-dlm", "siamese", "memory"])
def test_to_try_an_update_is_not_to_learn(device, name):
    step, batches = parts(device, name, augment=("crop",))
    state = live_tensors(step.model, step.method, step.optimiser)
    before = {key: each.clone() for key, each in state.items()}
    assert seconds_an_update(step, state, batches[0]) > 0
    assert all(torch.equal(each, before[key]) for key, each in state.items())


def test_settings_of_convolutions_are_put_back():
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    with repeatable():
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
    assert (cudnn.deterministic, cudnn.benchmark) == before


def test_state_is_alive():
    step, batches = parts("cpu", "siamese")
    state = live_tensors(step.model, step.method, step.optimiser)
    names = ["model.0.0.weight", "model.3.1.running_mean", "method.loss.head.bias", "adam.step.method.loss.head.bias"]
    before = {name: state[name].clone() for name in names}
    step(batches[0])
    assert all(not torch.equal(state[name], before[name]) for name in names)
    assert len(state) == len({each.data_ptr() for each in state.values()})  # nothing is told twice


@pytest.mark.parametrize("name", ["map-dlm", "siamese", "prototypical", "maml", "baseline++"])
def test_every_system_learns(name):
    step, batches = parts("cpu", name)
    before = {key: each.clone() for key, each in step.model.named_parameters()}
    for batch in batches:
        value, _ = step(batch)
        assert value.isfinite()
    assert all(each.isfinite().all() for each in step.model.parameters())
    assert any(not torch.equal(each, before[key]) for key, each in step.model.named_parameters())
