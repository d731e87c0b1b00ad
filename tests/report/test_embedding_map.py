"""The map gathers what is near."""

import numpy as np
import pytest
import torch

from rankshot import data
from rankshot.models import Conv4
from rankshot.report.embedding_map import embedding_map, layout


def clusters(seed=0, spread=0.15):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(6, 32, generator=generator)
    vectors = centres.repeat_interleave(15, 0) + spread * torch.randn(90, 32, generator=generator)
    return torch.nn.functional.normalize(vectors, dim=1), torch.arange(6).repeat_interleave(15)


def test_clusters_stay_together():
    vectors, labels = clusters()
    places = torch.from_numpy(layout(vectors))
    assert places.shape == (90, 2)
    assert places.isfinite().all()
    nearest = torch.cdist(places, places).fill_diagonal_(torch.inf).topk(5, largest=False).indices
    assert (labels[nearest] == labels[:, None]).double().mean() > 0.99


def test_it_is_the_same_every_time():
    vectors, _ = clusters()
    assert np.array_equal(layout(vectors), layout(vectors))


def test_degenerate_input():
    assert np.isfinite(layout(torch.zeros(10, 4))).all()
    assert np.isfinite(layout(torch.eye(4))).all()
    assert layout(torch.eye(2)).shape == (2, 2)
    assert layout(torch.rand(10, 1)).shape == (10, 2)  # one dimension


@pytest.mark.parametrize("filters", [1, 4])
def test_narrow_and_collapsed_networks_have_a_map_too(filters):
    model = Conv4(filters=filters)
    for each in model.parameters():
        torch.nn.init.zeros_(each)
    drawn = embedding_map(model, data.load("glyphs", "val"), seed=0)
    assert "nan" not in drawn
    assert drawn.count("<image") == 160
