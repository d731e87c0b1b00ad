"""Batches: N classes, |B| images of their pool; the same for a seed, from any point on, in any number of processes."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankshot.data import ClassBatchSampler


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 8), st.integers(2, 20))
def test_a_batch_is_drawn_from_the_pool_of_its_classes(seed, n_classes, batch_size):
    labels = torch.randint(12, (400,), generator=torch.Generator().manual_seed(seed % 7)) * 5 - 3
    sampler = ClassBatchSampler(labels, n_classes, batch_size, seed=seed)
    for number in range(3):
        indices = sampler.draw(number)
        assert indices.shape == (batch_size,)
        assert len(indices.unique()) == batch_size  # without replacement
        assert len(labels[indices].unique()) <= n_classes


def test_every_image_is_drawn_equally_often_and_counts_are_uneven():
    labels = torch.arange(60) // 6
    sampler = ClassBatchSampler(labels, n_classes=4, batch_size=12)
    drawn = torch.stack([sampler.draw(number) for number in range(2000)])
    of_images = drawn.flatten().bincount(minlength=60) / 2000
    assert (of_images - 12 / 60).abs().max() < 5 * (0.2 * 0.8 / 2000) ** 0.5
    counts = torch.stack([labels[each].bincount(minlength=10) for each in drawn])
    assert ((counts > 0).sum(-1) <= 4).all()
    # Hypergeometric, 6 of 24 images in 12 draws: variance 12 * 1/4 * 3/4 * 12/23 of each chosen class.
    chosen = counts.sort(-1, descending=True).values[:, :4].double()
    assert (chosen - 3).square().mean().item() == pytest.approx(12 * 0.25 * 0.75 * 12 / 23, rel=0.1)


def test_seeds_and_resuming():
    labels = torch.arange(100) % 10
    first = list(itertools.islice(ClassBatchSampler(labels, 4, 16, seed=3), 6))
    assert first == list(itertools.islice(ClassBatchSampler(labels, 4, 16, seed=3), 6))
    assert first[4:] == list(itertools.islice(ClassBatchSampler(labels, 4, 16, seed=3, start=4), 2))
    assert first != list(itertools.islice(ClassBatchSampler(labels, 4, 16, seed=4), 6))
    before = torch.random.get_rng_state()
    ClassBatchSampler(labels, 4, 16).draw(0)
    assert torch.equal(before, torch.random.get_rng_state())  # nobody else's random numbers are used


def test_processes_share_one_batch():
    labels = torch.arange(100) % 10
    whole = ClassBatchSampler(labels, 4, 16).draw(5)
    shares = [ClassBatchSampler(labels, 4, 16, rank=rank, world_size=4).draw(5) for rank in range(4)]
    assert [len(each) for each in shares] == [4] * 4
    assert sorted(torch.cat(shares).tolist()) == sorted(whole.tolist())


def test_with_a_data_loader():
    labels = torch.arange(100) % 10
    images = torch.utils.data.TensorDataset(torch.arange(100), labels)
    loader = torch.utils.data.DataLoader(images, batch_sampler=ClassBatchSampler(labels, 4, 16))
    for numbers, batch_labels in itertools.islice(loader, 3):
        assert numbers.shape == (16,)
        assert torch.equal(labels[numbers], batch_labels)


def test_on_any_device(device):
    sampler = ClassBatchSampler((torch.arange(100) % 10).to(device), 4, 16)
    assert sampler.draw(0).device.type == device
    assert torch.equal(sampler.draw(0), sampler.draw(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 11}, "a batch must have 2 to 10 classes, as many as there are, got 11"),
        ({"n_classes": 1}, "a batch must have 2 to 10 classes, as many as there are, got 1"),
        ({"n_classes": 2, "batch_size": 21}, "2 classes have as few as 20 images together, got batch size 21"),
        ({"n_classes": 4, "batch_size": 16, "world_size": 3}, "a batch of 16 cannot be shared as part 0 of 3"),
        ({"n_classes": 4, "batch_size": 16, "rank": 2, "world_size": 2}, "a batch of 16 cannot be shared as part 2 of 2"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        ClassBatchSampler(torch.arange(100) % 10, **options)


def test_labels_of_another_shape():
    for shape in ((0,), (4, 4)):
        with pytest.raises(ValueError, match="labels must be one for each image, got shape"):
            ClassBatchSampler(torch.zeros(shape, dtype=torch.int64))
