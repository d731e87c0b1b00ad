"""Episodes as training batches."""

import pytest
import torch
from methods.made import made


def test_split_and_cross_entropy():
    _, method = made("prototypical", options=("shot=2",), batch_classes=3, batch_size=15)
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
        ("maml", {"batch_size": 18, "options": ("tasks=4",)}, "cannot be 4 episodes of 3 classes .* a multiple of 12"),
        ("matching", {"options": ("shot=4",)}, "shot must be from 1 to 3, for a class has 4 images in a batch, got 4"),
        ("matching", {"options": ("shot=0",)}, "shot must be from 1 to 3"),
        ("memory", {"options": ("tasks=0",)}, "tasks must be a whole number from 1 to 10,000, got 0"),
        ("maml", {"options": ("rate=0", "tasks=2")}, "rate must be a number from 1e-09 to 1e[+]09, got 0"),
        ("maml", {"options": ("steps=0", "tasks=2")}, "steps must be a whole number from 1 to 1,000, got 0"),
        ("maml", {"options": ("rate=inf", "tasks=2")}, "rate of a network 'maml' should be a number from .*, got inf"),
        ("memory", {"options": ("margin=nan", "tasks=2")}, "margin must be a number from 1e-09 to 1e[+]09, got nan"),
        (
            "baseline++",
            {"options": ("passes=0",)},
            "passes of a network .* should be a whole number from 1 to 16,384, got 0",
        ),
        ("baseline++", {"options": ("passes=10001",)}, "passes must be a whole number from 1 to 10,000, got 10001"),
        ("meta-lstm", {"options": ("steps=0",)}, "steps must be a whole number from 1 to 1,000, got 0"),
        (
            "matching-fce",
            {"options": ("reads=0",)},
            "reads of a network .* should be a whole number from 1 to 16,384, got 0",
        ),
        ("matching-fce", {"options": ("reads=1001",)}, "reads must be a whole number from 1 to 1,000, got 1001"),
        (
            "memory",
            {"options": ("slots=0",)},
            "slots of a network .* should be a whole number from 1 to 16,384, got 0",
        ),
        ("memory", {"options": ("slots=5", "tasks=2")}, "slots must be as many as the classes in a memory, 6, got 5"),
        ("memory", {"options": ("slots=2", "tasks=2", "shared=false")}, "as the classes in a memory, 3, got 2"),
        (
            "matching",
            {"options": ("scale=-1",)},
            "a network 'matching' cannot be made: scale must be a number from 1e-09 to 1e[+]09, got -1",
        ),
    ],
)
def test_bad_batches_and_options(name, settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        made(name, **settings)
