"""Numbers that people set: what is far outside of what makes sense is one sentence, for callers in Python too."""

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
import torch

from rankshot import fewshot, losses, ranking
from rankshot.data import ClassBatchSampler
from rankshot.data.episode_batches import EpisodeSampler, ImageSampler
from rankshot.limits import positive, real, whole
from rankshot.methods import METHODS
from rankshot.training import TrainConfig

ODD = [0, -1, 2**31, 2**63 - 1, 2**64, 10**30, 10**400, math.nan, math.inf, -math.inf, 1e308, 1e-320]
ODD += ["", "9" * 5000, None, True]
LABELS = torch.arange(40) % 5
EMBEDDINGS = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))

BESIDE = {"smoothing_samples": {"smoothing": 0.1}, "coarse_alpha": {"coarse_weight": 1.0}}  # else they do not count
LOSSES = [(losses.RankingLoss, name, BESIDE.get(name, {})) for name in METHODS["map-dlm"].types]
LOSSES += [(kind, "temperature", {}) for kind in (losses.SmoothAPLoss, losses.NCALoss, losses.SupConLoss)]
LOSSES += [(losses.TripletLoss, "margin", {}), (losses.FastAPLoss, "bins", {})]
LOSSES += [(losses.LMNNLoss, name, {}) for name in ("neighbours", "margin", "push")]
LOSSES += [(losses.ClassifierLoss, "scale", {"dimensions": 8, "classes": 5, "cosine": True})]
LOSSES += [(losses.ClassifierLoss, "classes", {"dimensions": 8}), (losses.SiameseLoss, "dimensions", {})]


@pytest.mark.parametrize(("kind", "name", "others"), LOSSES)
def test_losses(kind, name, others):
    """Refused, or they compute something finite."""
    for value in ODD:
        with suppress(ValueError, TypeError):
            loss = kind(**{name: value, **others})
            if name not in ("classes", "dimensions"):  # which are to fit the batch
                assert loss(EMBEDDINGS, LABELS).isfinite(), value


TASK = fewshot.Retrieval(way=3, per_class=4)
CALLS = [
    lambda value: ranking.precision_at(value)(EMBEDDINGS, EMBEDDINGS > 0),
    lambda value: ranking.get_metric(f"precision@{value}"),
    lambda value: ranking.loss_table("ap", value, 3),
    lambda value: ranking.loss_table("ap", 3, value),
    lambda value: ranking.dlm(EMBEDDINGS, EMBEDDINGS > 0, epsilon=value),
    lambda value: ranking.dlm(EMBEDDINGS, EMBEDDINGS > 0, alpha=value),
    lambda value: ranking.loss_augmented_ranking(EMBEDDINGS, EMBEDDINGS > 0, epsilon=value),
    lambda value: fewshot.Classification(way=value, shot=1),
    lambda value: fewshot.Classification(way=5, shot=value),
    lambda value: fewshot.Classification(way=5, shot=1, per_class=value),
    lambda value: fewshot.Retrieval(way=value),
    lambda value: fewshot.Retrieval(way=5, per_class=value),
    lambda value: fewshot.draw_episodes(LABELS, TASK, value, 0),
    lambda value: fewshot.draw_episodes(LABELS, TASK, 2, value),
    lambda value: ClassBatchSampler(LABELS, n_classes=value).draw(0),
    lambda value: ClassBatchSampler(LABELS, 3, batch_size=value).draw(0),
    lambda value: ClassBatchSampler(LABELS, 3, 8, world_size=value).draw(0),
    lambda value: ClassBatchSampler(LABELS, 3, 8, rank=value).draw(0),
    lambda value: ClassBatchSampler(LABELS, 3, 8, seed=value).draw(0),
    lambda value: EpisodeSampler(LABELS, value, 4).draw(0),
    lambda value: EpisodeSampler(LABELS, 3, value).draw(0),
    lambda value: EpisodeSampler(LABELS, 3, 4, tasks=value).draw(0),
    lambda value: ImageSampler(LABELS, value).draw(0),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(number):
    for value in ODD:
        with suppress(ValueError, TypeError):
            CALLS[number](value)


@pytest.mark.parametrize("name", [name for name, each in TrainConfig().flat().items() if not isinstance(each, bool)])
def test_settings(name):
    """Refused in a sentence that names it, if only by its last word."""
    told = []
    for value in [*ODD, (10**30,), (-1,), ("",)]:
        try:
            TrainConfig.of(**{name: value})
        except ValueError as error:
            told.append(str(error))
    assert told
    assert all(name.split("_")[-1].rstrip("s") in each and "\n" not in each for each in told)


def test_scores_that_are_none():
    for wrong in (math.nan, math.inf, 1e38):
        scores = EMBEDDINGS.clone()
        scores[3, 2] = wrong
        with pytest.raises(ValueError, match=r"scores must be finite, .* for query 3, item 2"):
            ranking.average_precision(scores, EMBEDDINGS > 0)
        if wrong != 1e38:
            with pytest.raises(ValueError, match=r"embeddings must be finite, got .* in row 3, column 2"):
                losses.RankingLoss()(scores, LABELS)


def test_numbers_of_every_kind():
    assert whole("n", np.int64(5), 1, 9) == 5
    assert type(whole("n", np.int64(5), 1, 9)) is int
    assert real("x", np.float32(0.5), 0, 1) == 0.5
    assert real("x", Fraction(1, 2), 0, 1) == 0.5
    assert positive("x", 3) == 3.0
    for wrong in (True, 1.0, "1", None, 0, 10):
        with pytest.raises(ValueError, match="n must be a whole number from 1 to 9, got"):
            whole("n", wrong, 1, 9)
    for wrong in (True, "1", None, -0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="x must be a number from 0 to 1, got"):
            real("x", wrong, 0, 1)
    with pytest.raises(ValueError, match="got a number of 5,001 digits"):
        whole("n", 10**5000, 1, 9)
