"""Episodes hold what they should, evenly, and can be replayed."""

import pytest
import torch

from rankshot.fewshot import Classification, Retrieval, draw_episodes, episodes

UNEVEN = torch.repeat_interleave(torch.tensor([7, 3, 900, -2, 5]), torch.tensor([4, 6, 5, 9, 4]))


@pytest.mark.parametrize("task", [Classification(3, 1, per_class=4), Retrieval(5, per_class=3)], ids=str)
def test_an_episode_is_of_distinct_classes_and_images(task):
    labels = UNEVEN[torch.randperm(28, generator=torch.Generator().manual_seed(0))]
    drawn = draw_episodes(labels, task, episodes=300, seed=0)
    assert drawn.shape == (300, task.way, task.per_class)
    for episode in drawn:
        assert len(episode.flatten().unique()) == task.way * task.per_class
        of_classes = labels[episode]
        assert (of_classes == of_classes[:, :1]).all()
        assert len(of_classes[:, 0].unique()) == task.way


def test_every_class_and_every_image_of_it_comes_equally_often():
    labels = UNEVEN
    drawn = draw_episodes(labels, Retrieval(2, per_class=2), episodes=20_000, seed=1)
    counts = drawn.flatten().bincount(minlength=28) / 20_000
    sizes = torch.tensor([(labels == label).sum() for label in labels])
    expected = 2 / 5 * 2 / sizes
    assert ((counts - expected).abs() < 5 * (expected / 20_000).sqrt()).all()
    first = drawn[:, :, 0].flatten().bincount(minlength=28) / 20_000  # the labelled ones are as random as the others
    assert ((first - expected / 2).abs() < 5 * (expected / 20_000).sqrt()).all()


def test_replay(monkeypatch):
    labels = torch.arange(600) // 20
    one, other = Classification(5, 1), Classification(5, 5)
    first = draw_episodes(labels, one, 50, seed=3)
    assert torch.equal(first, draw_episodes(labels, one, 50, seed=3))
    assert not torch.equal(first, draw_episodes(labels, one, 50, seed=4))
    assert not torch.equal(first, draw_episodes(labels, other, 50, seed=3))
    before = torch.random.get_rng_state()
    draw_episodes(labels, one, 50, seed=3)
    assert torch.equal(before, torch.random.get_rng_state())
    monkeypatch.setattr(episodes, "CHUNK", 1000)
    assert draw_episodes(labels, one, 50, seed=3).shape == first.shape


def test_too_few_classes_or_images():
    labels = torch.arange(60) // 6
    with pytest.raises(ValueError, match="1-shot 11-way needs 11 classes, but there are 10"):
        draw_episodes(labels, Classification(11, 1, per_class=6), 10, seed=0)
    with pytest.raises(ValueError, match="retrieval 5-way needs 10 images a class, but class 0 has 6"):
        draw_episodes(labels, Retrieval(5), 10, seed=0)
    with pytest.raises(TypeError, match="labels must be a tensor, got list"):
        draw_episodes(labels.tolist(), Retrieval(5), 10, seed=0)
