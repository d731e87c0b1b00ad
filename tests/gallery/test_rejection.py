"""The threshold against leaving out one example at a time, by hand."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from rankshot.fewshot.class_means import TEMPERATURE, other_classes
from rankshot.fewshot.rules import prototypes
from rankshot.gallery.rejection import among_themselves, calibrated, judged, nearness


def example(counts=(3, 1, 4), seed=0):
    random = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    centres = torch.randn(len(counts), 6, generator=random, dtype=torch.float64)
    noise = torch.randn(len(labels), 6, generator=random, dtype=torch.float64)
    return normalize(centres[labels] + 0.3 * noise, dim=-1), labels


@pytest.mark.parametrize("others", [None, torch.zeros(0, 6, dtype=torch.float64), example((2, 3), seed=5)[0]])
def test_leaving_out_one_at_a_time(others):
    support, labels = example()
    known, strangers = among_themselves(support, labels, 3, others)
    expected, foreign = [], []
    for place, label in enumerate(labels.tolist()):
        rest = [each for each in range(len(labels)) if each != place]
        elsewhere = [each for each in rest if labels[each] != label]
        without_class = prototypes(support[elsewhere], labels[elsewhere], 3)
        foreign.append(nearness(support[place : place + 1], without_class[without_class.abs().sum(1) > 0], others).item())
        if (labels == label).sum() > 1:
            expected.append(nearness(support[place : place + 1], prototypes(support[rest], labels[rest], 3), others).item())
    torch.testing.assert_close(known, torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(strangers, torch.tensor(foreign, dtype=torch.float64))


def test_the_rate_is_kept_by_the_examples():
    support, labels = example((10, 12, 9, 14), seed=1)
    found = calibrated(support, labels, 4, 0.1)
    assert abs(found.false_rejections - 0.1) < 0.03
    known, strangers = among_themselves(support, labels, 4)
    assert found.false_acceptances == (strangers >= found.threshold).double().mean()
    assert judged(2.0, known, strangers)[1:] == (1.0, 0.0)


def test_what_cannot_be_told():
    support, labels = example((1, 1, 1))
    assert calibrated(support, labels, 3, 0.05) is None
    lonely = support[:2], torch.zeros(2, dtype=torch.long)
    assert math.isnan(calibrated(*lonely, 1, 0.05).false_acceptances)  # one class only: there are no strangers


def test_what_looks_like_another_class_is_less_near():
    """By the definition, one query and one class at a time."""
    centres, other = torch.eye(4, dtype=torch.float64)[:2], torch.eye(4, dtype=torch.float64)[2:]
    queries = normalize(
        torch.tensor([[1.0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 1]], dtype=torch.float64), dim=-1
    )

    def soft_maximum(cosines):
        return TEMPERATURE * math.log(sum(math.exp(cosine / TEMPERATURE) for cosine in cosines) / len(cosines))

    expected = [
        soft_maximum([float(query @ centre) for centre in centres]) - soft_maximum([float(query @ one) for one in other])
        for query in queries
    ]
    found = nearness(queries, centres, other)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    assert found[0] > found[1] > found[3] > found[2]  # the last is less like either of the others than the third like one
    torch.testing.assert_close(nearness(queries, centres), (queries @ centres.T).amax(-1))


def test_a_threshold_means_about_the_same_among_few_classes_as_among_many():
    """As many copies of each class change nothing."""
    support, _ = example((3, 3, 3), seed=2)
    queries, centres, others = support[:4], support[4:6], support[6:]
    found = nearness(queries, centres, others)
    torch.testing.assert_close(nearness(queries, centres.repeat(7, 1), others.repeat(3, 1)), found)


def test_classes_that_are_taught_do_not_count_against_themselves():
    random = torch.Generator().manual_seed(0)
    centres = normalize(torch.randn(8, 40, generator=random, dtype=torch.float64), dim=-1)
    labels = torch.arange(3).repeat_interleave(torch.tensor([5, 1, 4]))
    noise = torch.randn(10, 40, generator=random, dtype=torch.float64)
    support = normalize(centres[labels] + 0.12 * noise, dim=-1)  # each about 0.8 from its class, by cosine
    kept = other_classes(centres, support, labels, 3)  # of which the first three are taught
    assert torch.equal(kept, centres[3:])
    assert torch.equal(other_classes(centres, support[4:7], torch.arange(3), 3), centres)  # one of each: nobody can tell
