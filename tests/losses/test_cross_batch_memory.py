"""Embeddings of earlier batches, beside a loss that is given all of them by hand."""

import pytest
import torch
from losses.some_processes import LOSSES as EVERY_LOSS

from rankshot.losses import ClassifierLoss, CrossBatchMemory, RankingLoss

LOSSES = {name: make for name, make in EVERY_LOSS.items() if name != "classifier"}  # which compares no images


def batches(number, size=6, images=30):
    random = torch.Generator().manual_seed(0)
    for _ in range(number):
        ids = torch.randperm(images, generator=random)[:size]
        yield torch.randn(size, 5, generator=random, dtype=torch.float64), ids % 4, ids


@pytest.mark.parametrize("name", LOSSES)
def test_it_is_the_loss_with_what_was_embedded_before(name):
    torch.manual_seed(0)
    loss = LOSSES[name]().double()
    memory = CrossBatchMemory(loss, 5, memory_size=14).double()
    before = (torch.zeros(0, 5).double(), torch.zeros(0).long(), torch.zeros(0).long())
    for embeddings, labels, ids in batches(5):  # the memory overflows in the third
        found = embeddings.clone().requires_grad_()
        wanted = embeddings.clone().requires_grad_()
        value = memory(found, labels, ids=ids)
        expected = loss(
            wanted,
            labels,
            ref_emb=torch.cat([wanted, before[0]]),
            ref_labels=torch.cat([labels, before[1]]),
            ids=ids,
            ref_ids=torch.cat([ids, before[2]]),
        )
        torch.testing.assert_close(value, expected)
        value.backward()
        expected.backward()
        torch.testing.assert_close(found.grad, wanted.grad, rtol=1e-9, atol=1e-12)
        now = (torch.nn.functional.normalize(embeddings), labels, ids)
        before = tuple(torch.cat([old, new])[-14:] for old, new in zip(before, now, strict=True))
    assert len(memory) == 14


def test_without_ids_every_image_is_a_new_one():
    memory = CrossBatchMemory(RankingLoss(), 5, memory_size=12).double()
    (one, labels, _), *_ = batches(1)
    alone = RankingLoss()(one, labels)
    torch.testing.assert_close(memory(one, labels), alone)  # nothing is remembered yet
    again = memory(one, labels)  # and now each image has its double there
    assert again != alone
    assert len(memory) == 12
    memory.reset()
    assert len(memory) == 0
    torch.testing.assert_close(memory(one, labels), alone)


def test_its_state_goes_on_where_it_was():
    one, other = (CrossBatchMemory(RankingLoss(), 5, memory_size=20).double() for _ in range(2))
    *first, (embeddings, labels, ids) = batches(4)
    for batch in first:
        one(batch[0], batch[1], ids=batch[2])
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(embeddings, labels, ids=ids), other(embeddings, labels, ids=ids))


def test_what_does_not_fit():
    memory = CrossBatchMemory(RankingLoss(), 5, memory_size=8)
    with pytest.raises(ValueError, match="a batch of 9 images does not fit in a memory of 8"):
        memory(torch.randn(9, 5), torch.arange(9) % 2)
    with pytest.raises(ValueError, match="the memory is of 5 dimensions, got embeddings of 4"):
        memory(torch.randn(6, 4), torch.arange(6) % 2)
    with pytest.raises(ValueError, match="indices_tuple must be None"):
        memory(torch.randn(6, 5), torch.arange(6) % 2, (torch.zeros(1),) * 4)
    with pytest.raises(ValueError, match="embeddings must be finite"):
        memory(torch.full((6, 5), torch.nan), torch.arange(6) % 2)
    assert len(memory) == 0  # what was refused is not remembered
    with pytest.raises(TypeError, match="loss must be one that compares images with one another, got ClassifierLoss"):
        CrossBatchMemory(ClassifierLoss(5, 3), 5)
