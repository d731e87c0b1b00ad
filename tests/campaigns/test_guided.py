"""What guided inputs have reached so far: each is answered, or refused in the words of its target."""

from pathlib import Path

import pytest

from campaigns.guided import LARGEST
from campaigns.guided_targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("target", LARGEST)
def test_the_corpus(target):
    files = sorted((CORPUS / target).iterdir())
    assert files
    for each in files:
        TARGETS[target](each.read_bytes())


def test_the_corpus_is_small():
    assert sum(each.stat().st_size for each in CORPUS.rglob("*") if each.is_file()) < 200_000
