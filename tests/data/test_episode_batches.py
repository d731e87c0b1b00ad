"""Batches that are episodes, and batches of anything."""

import pytest
import torch

from rankshot.data.episode_batches import EpisodeSampler, ImageSampler

LABELS = torch.tensor([3] * 5 + [1] * 9 + [7] * 4 + [2] * 30 + [5] * 6)


def test_episodes(device):
    sampler = EpisodeSampler(LABELS.to(device), way=3, per_class=4, tasks=2, seed=5)
    seen, classes = set(), set()
    for number in range(200):
        drawn = sampler.draw(number)
        assert drawn.device.type == device
        for task in LABELS[drawn.cpu()].view(2, 3, 4):
            assert all(len(each.unique()) == 1 for each in task)  # class by class
            assert len(task[:, 0].unique()) == 3
            classes.update(task[:, 0].tolist())
        assert all(len(each.unique()) == 12 for each in drawn.view(2, 12))  # no image twice
        seen.update(drawn.tolist())
    assert classes == {1, 2, 3, 5, 7}
    assert len(seen) == len(LABELS)
    assert torch.equal(sampler.draw(7), sampler.draw(7))
    assert not torch.equal(sampler.draw(7), EpisodeSampler(LABELS, 3, 4, 2, seed=6).draw(7).to(device))


def test_bad_episodes():
    for way, per_class, tasks, complaint in (
        (6, 2, 1, "an episode must have 2 to 5 classes, as many as there are, got 6"),
        (3, 5, 1, "an episode takes 2 to 4 images a class, as many as the smallest has, got 5"),
        (3, 1, 1, "got 1"),
        (3, 2, 0, "tasks must be a whole number from 1 to .*, got 0"),
    ):
        with pytest.raises(ValueError, match=complaint):
            EpisodeSampler(LABELS, way, per_class, tasks)


def test_any_images(device):
    sampler = ImageSampler(LABELS.to(device), batch_size=6, seed=1)
    drawn = torch.stack([sampler.draw(number) for number in range(100)])
    assert drawn.device.type == device
    assert len(drawn.unique()) == len(LABELS)
    assert torch.equal(sampler.draw(4), drawn[4])
    with pytest.raises(ValueError, match="batch_size must be a whole number from 2 to 131,072, got 1"):
        ImageSampler(LABELS, 1)
