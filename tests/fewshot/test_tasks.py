"""The tasks say what they are, and refuse what they cannot be."""

import pytest

from rankshot.fewshot import Classification, Retrieval


def test_names():
    assert str(Classification(way=20, shot=5)) == "5-shot 20-way"
    assert str(Retrieval(way=5)) == "retrieval 5-way"
    assert Classification(5, 1).per_class == 20
    assert Retrieval(5).per_class == 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Classification(1, 1), "2 classes or more, got way 1"),
        (lambda: Classification(5, 0), "shot must be from 1 to 19, got 0 of 20 images"),
        (lambda: Classification(5, 20), "shot must be from 1 to 19, got 20 of 20 images"),
        (lambda: Retrieval(0), "2 classes or more, got way 0"),
        (lambda: Retrieval(5, per_class=1), "2 images a class or more, got 1"),
    ],
)
def test_what_they_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()
