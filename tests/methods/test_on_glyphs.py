"""Every system learns: briefly, what it is shown; and at length, to tell apart alphabets never seen."""

import numpy as np
import pytest
import torch
from methods.made import made

from rankshot import data, fewshot
from rankshot.data.episode_batches import EpisodeSampler
from rankshot.methods import METHODS, settings_for
from rankshot.models import from_pretrained
from rankshot.preprocess import Preprocess
from rankshot.training import TrainConfig, train

CHANCE = 0.2
OTHERS = {
    "maml": {"learning_rate": 0.01},
    "baseline++": {"learning_rate": 0.01},  # cosines learn slowly
    "meta-lstm": {"batch_size": 40},  # half the queries, and two thirds of the time
    "arc": {"window": 8, "glimpses": 4},  # which learn sooner than many small glimpses
    "nearest": {"filters": 12},
    "matching": {"filters": 12},
}
# As in a training of length, but for fewer steps of those that learn anew for each task.
BRIEFLY = {
    "maml": {"tasks": 2},
    "memory": {"tasks": 2},
    "meta-lstm": {"steps": 3},
    "arc": {"window": 8, "glimpses": 2, "hidden": 64},
}
FAST = {"meta-lstm": 0.03, "arc": 0.003}  # learning rates, where 0.01 is not right


@pytest.fixture(scope="module")
def shown(data_root):
    """Ten letters."""
    glyphs = data.load("glyphs", "train", data_root)
    keep = glyphs.labels < 10
    return data.ImageSet(glyphs.images[keep], glyphs.labels[keep], glyphs.classes[:10])


@pytest.mark.parametrize("name", list(METHODS))
def test_it_learns_what_it_is_shown(name, shown):
    """Sixty updates by hand: the loss falls, and the letters are told apart far better than before, each by one example."""
    torch.manual_seed(0)
    embedder = {"name": "conv4", "in_channels": 1, "filters": 8}
    settings = BRIEFLY.get(name, {})
    size = Preprocess(1, 28, 28)
    model, method = made(name, batch_classes=5, batch_size=40, embedder=embedder, preprocess=size, **settings)
    tasks = settings.get("tasks", 1)
    images, labels = torch.from_numpy(shown.images) / 255, torch.from_numpy(np.array(shown.labels))
    sampler = EpisodeSampler(labels, 5, 8 // tasks, tasks=tasks, seed=0)
    optimiser = torch.optim.Adam([*model.parameters(), *method.parameters()], lr=FAST.get(name, 0.01))
    task = fewshot.Classification(5, 1, per_class=10)
    (before,) = fewshot.evaluate(model, shown, [task], episodes=30)
    lost = []
    for update in range(60):
        drawn = sampler.draw(update)
        optimiser.zero_grad()
        loss, _ = method.learn(model.train(), images[drawn], labels[drawn])
        loss.backward()
        optimiser.step()
        lost.append(loss.item())
    (after,) = fewshot.evaluate(model, shown, [task], episodes=30)
    assert all(each.isfinite().all() for each in model.state_dict().values())
    if name != "map-dlm":  # the value of direct loss minimisation is not the metric, and need not fall
        assert np.mean(lost[-10:]) < np.mean(lost[:10])
    assert after.mean - after.interval > max(before.mean + before.interval, 1.5 * CHANCE), f"{before}, then {after}"


QUICK = ("prototypical",)  # and map-dlm, in tests/training/test_loop.py


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in METHODS])
def test_more_than_twice_chance(name, tmp_path, data_root):
    """200 updates on glyphs, then 5-way 1-shot on alphabets never seen, well above chance. Half a minute, some of them."""
    quiet = {"validate_every": 0, "log_every": 200, "checkpoint_every": 200}
    config = TrainConfig.of(**{"updates": 200, "filters": 8, **quiet, **settings_for(name), **OTHERS.get(name, {})})
    train(config, tmp_path / "run")
    images = data.load("glyphs", "test", data_root)
    model = from_pretrained(tmp_path / "run")
    (result,) = fewshot.evaluate(model, images, [fewshot.Classification(5, 1)], episodes=60)
    assert result.mean - result.interval > 2 * CHANCE, str(result)
