"""Images that are brought batch by batch: the right ones, in time, and with the same result."""

import numpy as np
import pytest
import torch

from rankshot.data import ImageSet
from rankshot.tensors import read_tensors
from rankshot.training import Callback, TrainConfig, train
from rankshot.training.assembly import Images, where_images_lie
from rankshot.training.prefetching import AHEAD, Prefetcher
from rankshot.training.run_folder import STATE


def drawn(number):
    return torch.arange(5) * (number + 1) % 40


@pytest.fixture
def images(tmp_path):
    """In a file that is mapped into memory."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 3, 6, 5), dtype=np.uint8)
    np.save(tmp_path / "images.npy", pixels)
    return ImageSet(np.load(tmp_path / "images.npy", mmap_mode="r"), np.arange(40) // 5, tuple("abcdefgh"))


def test_every_batch_has_its_images(images, device):
    prefetcher = Prefetcher(images.pixels(), drawn, torch.device(device), end=30)
    for number in (*range(8), 3, 20, *range(25, 30)):  # in order, and from anywhere
        for get in (prefetcher, prefetcher.now):
            indices, found = get(number)
            assert torch.equal(indices, drawn(number))
            assert found.device.type == device
            assert torch.equal(found.cpu(), images.pixels()[drawn(number)])
    prefetcher.close()


def test_it_looks_ahead_and_draws_every_batch_once(images):
    asked = []

    def draw(number):
        asked.append(number)
        return drawn(number)

    prefetcher = Prefetcher(images.pixels(), draw, torch.device("cpu"), end=7)
    prefetcher.now(0)
    assert asked == [0]
    for number in range(7):
        prefetcher(number)
        assert asked[1:] == list(range(min(number + AHEAD, 7)))
    prefetcher.close()


@pytest.mark.gpu
def test_images_are_there_before_they_are_read():
    """Large ones, while the GPU is busy."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    pixels = torch.randint(256, (256, 3, 224, 224), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    prefetcher = Prefetcher(pixels, lambda number: torch.arange(128) + number, torch.device("cuda"), end=60)
    busy, found = torch.rand(4096, 4096, device="cuda"), []
    for number in range(60):
        busy = (busy @ busy).clamp(0, 1)
        _, images = prefetcher(number)
        found.append(images.long().sum())
        del images
    assert [each.item() for each in found] == [pixels[number : number + 128].long().sum().item() for number in range(60)]
    prefetcher.close()


def test_what_goes_wrong_in_a_thread_is_told(images):
    prefetcher = Prefetcher(images.pixels(), lambda number: torch.tensor([40]), torch.device("cpu"), end=3)
    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        prefetcher(0)
    prefetcher.close()


@pytest.mark.parametrize("more", [{}, {"augment": ("crop", "jitter"), "average": 0.9}, {"method": "prototypical"}])
def test_the_result_is_the_same_to_the_last_bit(more, device, tmp_path):
    random = np.random.default_rng(0)
    made = [
        ImageSet(
            random.integers(0, 256, (60, 1, 16, 16), dtype=np.uint8),
            np.arange(60) // 6,
            tuple(f"{name}{number}" for number in range(10)),
        )
        for name in "ab"
    ]
    states = []
    for place in ("auto", "cpu"):
        config = TrainConfig.of(
            batch_classes=4,
            batch_size=24,
            filters=8,
            updates=12,
            validate_every=6,
            **{"validation_episodes": 5, "device": device, "images_on": place, **more},
        )
        train(config, tmp_path / place, train_set=made[0], val_set=made[1], progress=Callback())
        states.append(read_tensors(tmp_path / place / STATE))
    assert states[0].keys() == states[1].keys()
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name


def test_where_images_lie(images, monkeypatch):
    both = Images(images, images, None, None)
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * images.images.nbytes, 10**12))

    def place(asked, device):
        return where_images_lie(TrainConfig.of(images_on=asked), device, both)

    assert [place("auto", cuda), place("cpu", cuda), place("cuda", cuda)] == [cuda, cpu, cuda]
    assert [place("auto", cpu), place("cpu", cpu)] == [cpu, cpu]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * images.images.nbytes - 1, 10**12))
    assert [place("auto", cuda), place("cuda", cuda)] == [cpu, cuda]
    with pytest.raises(ValueError, match="images_on is 'cuda', but the network learns on the CPU"):
        place("cuda", cpu)
