"""Episodes as training batches."""

import math

import pytest
import torch
from methods.made import made


def test_split_and_cross_entropy():
    _, method = made("prototypical", shot=2, batch_classes=3, batch_size=15)
    support, queries = method.split(torch.arange(15.0)[:, None])
    assert support.squeeze().tolist() == [[0, 1], [5, 6], [10, 11]]
    assert queries.squeeze().tolist() == [[2, 3, 4], [7, 8, 9], [12, 13, 14]]
    scores = torch.randn(1, 9, 3)
    expected = -torch.stack([scores[0, at].log_softmax(-1)[at // 3] for at in range(9)]).mean()
    torch.testing.assert_close(method.cross_entropy(scores), expected)


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        (
            "prototypical",
            {"batch_size": 13},
            "cannot be 3 classes with as many images each, and 2 at least",
        ),
        ("prototypical", {"batch_size": 3}, "cannot be 3 classes"),
        ("maml", {"batch_size": 18, "tasks": 4}, "cannot be 4 episodes of 3 classes .* a multiple of 12, 24 or more"),
        ("maml", {"batch_size": 12, "tasks": 4}, "a batch of 12 images cannot be .* to a multiple of 12, 24 or more"),
        ("matching", {"shot": 4}, "shot must be from 1 to 3, for a class has 4 images in a batch, got 4"),
        ("matching", {"shot": 0}, "shot must be from 1 to 3"),
        ("memory", {"tasks": 0}, "tasks must be a whole number from 1 to 10,000, got 0"),
        ("maml", {"rate": 0, "tasks": 2}, "rate must be a number from 1e-09 to 1e[+]09, got 0"),
        ("maml", {"steps": 0, "tasks": 2}, "steps must be a whole number from 1 to 1,000, got 0"),
        ("maml", {"rate": math.inf, "tasks": 2}, "rate must be a number from 1e-09 to 1e[+]09, got inf"),
        ("memory", {"margin": math.nan, "tasks": 2}, "margin must be a number from 1e-09 to 1e[+]09, got nan"),
        (
            "baseline++",
            {"passes": 0},
            "passes of a network .* must be a whole number from 1 to 16,384, got 0",
        ),
        ("baseline++", {"passes": 10001}, "passes must be a whole number from 1 to 10,000, got 10001"),
        ("meta-lstm", {"steps": 0}, "steps must be a whole number from 1 to 1,000, got 0"),
        (
            "matching-fce",
            {"reads": 0},
            "reads must be a whole number from 1 to 1,000, got 0",
        ),
        ("matching-fce", {"reads": 1001}, "reads must be a whole number from 1 to 1,000, got 1001"),
        (
            "memory",
            {"slots": 0, "batch_size": 24},
            "slots must be as many as the classes in a memory, 12, got 0",
        ),
        ("memory", {"slots": 5, "tasks": 2}, "slots must be as many as the classes in a memory, 6, got 5"),
        ("memory", {"slots": 2, "tasks": 2, "shared": False}, "as the classes in a memory, 3, got 2"),
        ("arc", {"glimpses": 0}, "glimpses must be a whole number from 1 to 1,000, got 0"),
        ("arc", {"window": 65}, "window must be a whole number from 1 to 64, got 65"),
        ("arc", {"hidden": 0}, "hidden must be a whole number from 1 to 4,096, got 0"),
        ("arc", {"blocks": 5}, "blocks must be a whole number from 0 to 4, got 5"),
        ("arc", {"batch_size": 13}, "cannot be 3 classes with as many images each, and 2 at least"),
        (
            "matching",
            {"scale": -1},
            "scale must be a number from 1e-09 to 1e[+]09, got -1",
        ),
    ],
)
def test_bad_batches_and_options(name, settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        made(name, **settings)
