"""The memory that an update takes, told before it is taken."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from rankshot.models.efficientnet_lite import preprocess_at
from rankshot.models.network import build
from rankshot.training.batch_memory import PEAK, bytes_an_image, free_bytes

UPDATE = """
import sys, torch
from pathlib import Path
from rankshot.models.network import build
from rankshot.models.efficientnet_lite import preprocess_at
torch.set_num_threads(1)
network, size, images = build({"name": sys.argv[1]}, preprocess_at(int(sys.argv[2]))), int(sys.argv[2]), int(sys.argv[3])
network(torch.rand(2, 3, size, size)).sum().backward()
def now(field):
    return next(1024 * int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith(field))
before = now("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
network(torch.rand(images, 3, size, size)).sum().backward()
print(now("VmHWM") - before)
"""


def test_what_two_layers_keep():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.ReLU())
    kept = 4 * (3 * 10 * 10 + 8 * 8 * 8)  # what came in, and what came out: both layers need the numbers between them
    assert bytes_an_image(network, (3, 10, 10)) == int(PEAK * kept)
    network[0].weight.requires_grad_(False)
    assert bytes_an_image(network, (3, 10, 10)) == 0  # nothing learns


@pytest.mark.parametrize(
    ("name", "size", "images"), [("efficientnet-lite0", 96, 24), ("conv4", 84, 64), ("resnet12", 84, 8)]
)
@pytest.mark.slow
def test_it_is_about_what_an_update_takes(name, size, images):
    told = images * bytes_an_image(build({"name": name}, preprocess_at(size)), (3, size, size))
    command = [sys.executable, "-c", UPDATE, name, str(size), str(images)]
    taken = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert 0.6 * taken < told < 2 * taken, (told, taken)


def test_a_network_that_looks_at_its_numbers_is_not_told():
    class Looks(nn.Module):
        def forward(self, images):
            return images.mean((2, 3)) if images.sum() > 0 else images.sum((2, 3))

    assert bytes_an_image(Looks(), (3, 8, 8)) == 0


def test_free_memory():
    free = free_bytes(torch.device("cpu"))
    with open("/proc/meminfo") as file:
        whole = 1024 * int(next(line for line in file if line.startswith("MemTotal")).split()[1])
    assert 2**20 < free < whole
