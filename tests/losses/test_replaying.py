"""A loss that is replayed is the loss that is computed."""

import copy
import pickle
from itertools import pairwise

import pytest
import torch

from rankshot.losses import RankingLoss, replaying
from rankshot.vectors import NotFinite

pytestmark = pytest.mark.gpu
LOSSES = {
    "ours": RankingLoss,
    "paper": RankingLoss.paper,
    "ssvm": lambda: RankingLoss.paper("ssvm"),
    "negative": lambda: RankingLoss.paper(sign=-1),
    "ndcg": lambda: RankingLoss(metric="ndcg"),
}


@pytest.fixture(autouse=True)
def _gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")


def batches(size, dtype=torch.float32, number=8):
    random = torch.Generator().manual_seed(size)
    for _ in range(number):
        embeddings = 10 * torch.randn(size, 16, generator=random)
        yield embeddings.to("cuda", dtype), torch.randint(5, (size,), generator=random).cuda()


def value_and_gradient(loss, embeddings, labels):
    own = embeddings.clone().requires_grad_()
    value = loss(own, labels)
    (2 * value).backward()
    return value.detach(), own.grad


def computed(monkeypatch, loss, batch):
    with monkeypatch.context() as patch:
        patch.setattr(replaying, "MOST_IMAGES", 0)
        return value_and_gradient(loss, *batch)


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_values_and_gradients(name, dtype, monkeypatch):
    loss = LOSSES[name]()
    for size in (40, 128, 40):
        for batch in batches(size, dtype):
            found, expected = value_and_gradient(loss, *batch), computed(monkeypatch, loss, batch)
            assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))  # to the last bit
    assert sum(each is not None for each in loss._recordings._kept.values()) == 2


def test_two_batches_before_one_backward(monkeypatch):
    loss, together = RankingLoss(), list(batches(64))
    for one, other in pairwise(together):
        owns = [embeddings.clone().requires_grad_() for embeddings, _ in (one, other)]
        (loss(owns[0], one[1]) + loss(owns[1], other[1])).backward()
        for own, batch in zip(owns, (one, other), strict=True):
            torch.testing.assert_close(own.grad, computed(monkeypatch, loss, batch)[1] / 2, rtol=1e-4, atol=1e-5)


def test_what_is_wrong_is_still_told():
    loss = RankingLoss()
    for embeddings, labels in batches(32):
        value_and_gradient(loss, embeddings, labels)
    embeddings[3, 1] = torch.nan
    with pytest.raises(NotFinite, match="embeddings must be finite, got nan in row 3, column 1"):
        value_and_gradient(loss, embeddings, labels)
    with pytest.warns(UserWarning, match="no query of this batch of 32"):
        value, gradient = value_and_gradient(loss, torch.randn(32, 16).cuda(), torch.zeros_like(labels))
    assert value == 0
    assert not gradient.any()
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        loss(torch.randn(32, 16, device="cuda", requires_grad=True), labels).backward(create_graph=True)


def test_another_stream_and_a_graph_of_one_s_own(monkeypatch):
    loss, [*some] = RankingLoss(), batches(48)
    for batch in some:
        value_and_gradient(loss, *batch)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = [value_and_gradient(loss, *batch) for batch in some]
        own, labels = some[0][0].clone().requires_grad_(), some[0][1]
        loss(own, labels).backward()
    torch.cuda.synchronize()
    for batch, each in zip(some, found, strict=True):
        torch.testing.assert_close(each, computed(monkeypatch, loss, batch), rtol=1e-4, atol=1e-5)
    own.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss(own, labels).backward()
    graph.replay()
    torch.testing.assert_close(own.grad, computed(monkeypatch, loss, some[0])[1] / 2, rtol=1e-4, atol=1e-5)


def test_a_copy_begins_with_none():
    loss = RankingLoss()
    for batch in batches(16):
        expected = value_and_gradient(loss, *batch)
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):  # by who made it
        assert not again._recordings._kept
        torch.testing.assert_close(value_and_gradient(again, *batch), expected, rtol=1e-4, atol=1e-5)


def test_a_scaled_loss_of_half_precision():
    """As GradScaler scales it: neither infinite nor lost."""
    loss = RankingLoss()
    for embeddings, labels in batches(64, torch.float16):
        own = embeddings.clone().requires_grad_()
        (65536 * loss(own, labels)).backward()
        whole = embeddings.float().requires_grad_()
        loss(whole, labels).backward()
        torch.testing.assert_close(own.grad.float() / 65536, whole.grad, rtol=1e-2, atol=1e-6)
    assert not any(key[1] == torch.float16 for key in loss._recordings._kept)


def test_without_gradients_nothing_is_recorded():
    loss = RankingLoss()
    for embeddings, labels in batches(64):
        with torch.no_grad():
            loss(embeddings.requires_grad_(), labels)
        with torch.inference_mode():
            loss(embeddings.detach(), labels)
    assert not loss._recordings._kept
