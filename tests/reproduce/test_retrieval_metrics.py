"""Rankings of retrieval episodes, judged by every metric."""

import numpy as np
import pytest
import torch
from oracles import metric_of
from torch import nn

from rankshot import fewshot
from rankshot.data import ImageSet
from rankshot.fewshot import Retrieval, draw_episodes
from rankshot.reproduce.retrieval_metrics import by_each_metric
from rankshot.reproduce.studies import METRICS

TASK = Retrieval(4, per_class=5)


class Flat(nn.Module):
    embedding_dim = 16

    def forward(self, images):
        return images.flatten(1) - 0.5


def images():
    random = np.random.default_rng(0)
    labels = np.arange(60) // 10
    pixels = random.integers(0, 200, (60, 1, 4, 4)) + 8 * labels[:, None, None, None]
    return ImageSet(pixels.astype(np.uint8), labels, tuple("abcdef"))


def test_by_their_definitions():
    found = by_each_metric(Flat(), images(), TASK, tuple(METRICS), seed=3, episodes=4)
    vectors = fewshot.embed_all(Flat(), images())
    expected = {metric: [] for metric in METRICS}
    for drawn in draw_episodes(torch.from_numpy(images().labels), TASK, 4, 3):
        pool, labels = vectors[drawn.flatten()], torch.arange(4).repeat_interleave(5)
        for query in range(20):
            others = [each for each in range(20) if each != query]
            order = sorted(others, key=lambda each: -float(pool[each] @ pool[query]))
            for metric, values in expected.items():
                values.append(metric_of([bool(labels[each] == labels[query]) for each in order], metric))
    for metric, values in expected.items():
        assert found[metric]["mean"] == pytest.approx(np.mean(values), abs=1e-6)
        assert found[metric]["interval"] > 0


def test_ap_is_what_evaluate_gives():
    found = by_each_metric(Flat(), images(), TASK, ("ap",), seed=0, episodes=250)  # in several parts
    (result,) = fewshot.evaluate(Flat(), images(), [TASK], 250, seed=0)
    assert found["ap"] == pytest.approx({"mean": result.mean, "interval": result.interval}, rel=1e-6)
