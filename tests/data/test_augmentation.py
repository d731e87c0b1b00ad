"""Augmentation of a whole batch is what it would be image by image, and a pure function of its random numbers."""

import pytest
import torch

from rankshot.data.augmentation import AUGMENTATIONS, RANDOM_NUMBERS, augmented, random_numbers


@pytest.fixture
def images(device):
    return torch.rand(9, 3, 20, 30, generator=torch.Generator().manual_seed(0)).to(device)


def test_flip(images):
    noise = torch.rand(9, RANDOM_NUMBERS, device=images.device)
    for image, number, result in zip(images, noise, augmented(images, ["flip"], noise), strict=True):
        assert torch.equal(result, image.flip(-1) if number[0] < 0.5 else image)


def test_crop(images):
    noise = torch.rand(9, RANDOM_NUMBERS, device=images.device)
    noise[0], noise[1] = 0.0, 1 - 2**-24  # the furthest either way
    for image, number, result in zip(images, noise, augmented(images, ["crop"], noise), strict=True):
        down, right = int(number[1] * 5) - 2, int(number[2] * 7) - 3
        for row in range(20):
            for column in range(30):
                y, x = row + down, column + right
                inside = 0 <= y < 20 and 0 <= x < 30
                expected = image[:, y, x] if inside else torch.zeros_like(image[:, 0, 0])
                assert torch.equal(result[:, row, column], expected)


def test_jitter(images):
    noise = torch.rand(9, RANDOM_NUMBERS, device=images.device)
    for image, number, result in zip(images, noise, augmented(images, ["jitter"], noise), strict=True):
        bright = image * (0.6 + 0.8 * number[3])
        contrasted = bright.mean() + (0.6 + 0.8 * number[4]) * (bright - bright.mean())
        grey = contrasted.mean(0)
        expected = (grey + (0.6 + 0.8 * number[5]) * (contrasted - grey)).clamp(0, 1)
        torch.testing.assert_close(result, expected)
    same = torch.full((9, RANDOM_NUMBERS), 0.5, device=images.device)
    torch.testing.assert_close(augmented(images, ["jitter"], same), images)
    assert augmented(images[:, :1], ["jitter"], noise).shape == (9, 1, 20, 30)


def test_turn():
    images = torch.rand(40, 3, 5, 5)
    noise = torch.rand(40, RANDOM_NUMBERS)
    noise[0, -1], noise[1, -1], noise[2, -1] = 0.0, 0.4999, 1 - 2**-24
    quarters = []
    for image, number, result in zip(images, noise, augmented(images, ["turn"], noise), strict=True):
        (found,) = [quarter for quarter in range(4) if torch.equal(result, image.rot90(quarter, (1, 2)))]
        assert (found == 0) == (number[-1] < 0.5)
        quarters.append(found)
    assert set(quarters) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="only square images can be turned, got 5x6 pixels"):
        augmented(torch.zeros(1, 1, 5, 6), ["turn"], noise[:1])


def test_none_and_several(images):
    noise = torch.full((9, RANDOM_NUMBERS), 0.3, device=images.device)
    assert torch.equal(augmented(images, [], noise), images)
    both = augmented(images, ["flip", "crop"], noise)
    assert torch.equal(both, augmented(images.flip(-1), ["crop"], noise))


def test_unknown():
    with pytest.raises(ValueError, match=f"unknown augmentation 'blur': there is {', '.join(map(repr, AUGMENTATIONS))}"):
        augmented(torch.zeros(1, 1, 2, 2), ["blur"], torch.zeros(1, RANDOM_NUMBERS))


def test_the_images_of_a_class_are_turned_alike():
    labels = torch.tensor([3, 5, 3, 5, 3, 9000])  # numbers of classes have no end
    numbers = random_numbers(["turn"], labels, 0, 7)
    assert numbers.shape == (6, RANDOM_NUMBERS)
    assert numbers[0, -1] == numbers[2, -1] == numbers[4, -1] != numbers[1, -1] == numbers[3, -1]
    assert len(numbers[:, 0].unique()) == 6
    for seed, update in ((0, 8), (1, 7)):
        assert not torch.equal(numbers, random_numbers(["turn"], labels, seed, update))
    assert (random_numbers([], labels, 0, 7) == 0).all()
