"""The tasks say what they are, and refuse what they cannot be."""

import numpy as np
import pytest

from rankshot.data import ImageSet
from rankshot.fewshot import Classification, Retrieval, tasks_for


def test_names():
    assert str(Classification(way=20, shot=5)) == "5-shot 20-way"
    assert str(Retrieval(way=5)) == "retrieval 5-way"
    assert Classification(5, 1).per_class == 20
    assert Retrieval(5).per_class == 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Classification(1, 1), "way must be a whole number from 2 to 1,000,000, got 1"),
        (lambda: Classification(5, 0), "shot must be from 1 to 19, got 0 of 20 images"),
        (lambda: Classification(5, 20), "shot must be from 1 to 19, got 20 of 20 images"),
        (lambda: Classification(10**12, 1), "way must be a whole number from 2 to 1,000,000, got 1000000000000"),
        (lambda: Classification(5, 1.5), "shot must be from 1 to 19, got 1.5 of 20 images"),
        (lambda: Retrieval(0), "way must be a whole number from 2 to 1,000,000, got 0"),
        (lambda: Retrieval(5, per_class=1), "per_class must be a whole number from 2 to 1,000,000, got 1"),
    ],
)
def test_what_they_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_tasks_that_fit_the_images():
    labels = np.repeat(np.arange(30), 25)
    images = ImageSet(np.zeros((750, 1, 1, 1), dtype=np.uint8), labels, tuple(map(str, range(30))))
    tasks = tasks_for(images, ways=(20, 5), shots=(1, 5))
    assert tasks == [
        *(Classification(way, shot) for shot in (1, 5) for way in (5, 20)),
        *(Retrieval(way) for way in (5, 20)),
    ]
    few = ImageSet(images.images[:-18], labels[:-18], images.classes)  # the last class has 7
    assert tasks_for(few, ways=(5,), shots=(1,)) == [Classification(5, 1, per_class=7), Retrieval(5, per_class=7)]
    with pytest.raises(ValueError, match="31-way tasks need 31 classes, but there are 30"):
        tasks_for(images, ways=(31,), shots=(1,))
    with pytest.raises(ValueError, match="shot must be from 1 to 6, got 7 of 7 images"):
        tasks_for(few, ways=(5,), shots=(7,))
