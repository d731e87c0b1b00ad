"""Images with their labels, and rotations as classes."""

import numpy as np
import pytest
import torch

from rankshot.data import ImageSet


def small():
    images = np.arange(3 * 2 * 4 * 4, dtype=np.uint8).reshape(3, 2, 4, 4)
    return ImageSet(images, np.array([0, 1, 1]), ("a", "b"))


def test_rotations_are_classes():
    plain, turned = small(), small().with_rotations()
    assert repr(turned) == "ImageSet(12 images of 2x4x4, 8 classes)"
    assert turned.classes == tuple(f"{name}/{angle}" for angle in ("000", "090", "180", "270") for name in "ab")
    for turn in range(4):
        some = slice(3 * turn, 3 * turn + 3)
        assert (turned.labels[some] == plain.labels + 2 * turn).all()
        for image, original in zip(turned.images[some], plain.images, strict=True):
            for channel in range(2):
                np.testing.assert_array_equal(image[channel], np.rot90(original[channel], turn))


def test_what_is_not_an_image_set():
    images = small().images
    with pytest.raises(ValueError, match=r"\(n, C, H, W\) uint8, got \(3, 2, 4, 4\) float32"):
        ImageSet(images.astype(np.float32), np.zeros(3, dtype=np.int64), ("a",))
    with pytest.raises(ValueError, match=r"3 images need as many labels, got shape \(2,\)"):
        ImageSet(images, np.zeros(2, dtype=np.int64), ("a",))
    with pytest.raises(ValueError, match="labels must be from 0 to 0, one for each class, got 5"):
        ImageSet(images, np.array([0, 5, 0]), ("a",))
    with pytest.raises(ValueError, match="only square images"):
        ImageSet(images[:, :, :3], np.zeros(3, dtype=np.int64), ("a",)).with_rotations()


def test_tensors_and_lists():
    usual = small()
    for images in (usual.images, torch.from_numpy(usual.images)):
        for labels in ([0, 1, 1], (0, 1, 1), torch.tensor([0, 1, 1]), np.array([0, 1, 1], np.uint8)):
            made = ImageSet(images, labels, ["a", "b"])
            assert isinstance(made.images, np.ndarray)
            assert np.shares_memory(made.images, usual.images)  # it is not copied
            assert (made.labels.dtype, made.labels.tolist()) == (np.int64, [0, 1, 1])
            assert made.classes == ("a", "b")
    assert ImageSet(usual.images[:0], [], ()).labels.dtype == np.int64


def test_what_is_neither():
    images, labels = small().images, np.array([0, 1, 1])
    with pytest.raises(ValueError, match=r"images must be on the CPU, got a tensor on meta: write images\.cpu\(\)"):
        ImageSet(torch.zeros(3, 2, 4, 4, dtype=torch.uint8, device="meta"), labels, ("a", "b"))
    with pytest.raises(TypeError, match=r"images must be a NumPy array, got a list: write np\.stack\(images\)"):
        ImageSet(list(images), labels, ("a", "b"))
    with pytest.raises(ValueError, match=r"labels must be whole numbers, indices into classes, got <U1"):
        ImageSet(images, ["a", "b", "b"], ("a", "b"))
    for channels in (1, 3, 4):
        with pytest.raises(
            ValueError, match=r"channels first, got \(3, 28, 28, .\): write images\.transpose\(0, 3, 1, 2\)"
        ):
            ImageSet(np.zeros((3, 28, 28, channels), np.uint8), labels, ("a", "b"))
