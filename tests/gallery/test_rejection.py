"""The threshold against leaving out one example at a time, by hand."""

import math

import torch
from torch.nn.functional import normalize

from rankshot.fewshot.rules import prototypes
from rankshot.gallery.rejection import among_themselves, calibrated, judged, nearness


def example(counts=(3, 1, 4), seed=0):
    random = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    centres = torch.randn(len(counts), 6, generator=random, dtype=torch.float64)
    noise = torch.randn(len(labels), 6, generator=random, dtype=torch.float64)
    return normalize(centres[labels] + 0.3 * noise, dim=-1), labels


def test_leaving_out_one_at_a_time():
    support, labels = example()
    known, strangers = among_themselves(support, labels, 3)
    expected, foreign = [], []
    for place, label in enumerate(labels.tolist()):
        others = [each for each in range(len(labels)) if each != place]
        elsewhere = [each for each in others if labels[each] != label]
        without_class = prototypes(support[elsewhere], labels[elsewhere], 3)
        foreign.append(nearness(support[place : place + 1], without_class[without_class.abs().sum(1) > 0]).item())
        if (labels == label).sum() > 1:
            expected.append(nearness(support[place : place + 1], prototypes(support[others], labels[others], 3)).item())
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
