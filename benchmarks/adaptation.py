"""What an update of MAML costs by how the derivatives of its layers are computed, of which it needs the second too.

`python -m benchmarks.adaptation` writes results/benchmarks/adaptation-cpu.json, or adaptation-cuda.json: as torch
derives them, written out (models/double_backward.py), and on a GPU written out with kernels (models/task_convolution.py).
With the batches of the presets on a GPU, and with the usual ones of 28x28 images on a CPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.data.augmentation import RANDOM_NUMBERS
from rankshot.files import write_whole
from rankshot.hardware import circumstances
from rankshot.methods import METHODS, Context, make_method, settings_for
from rankshot.models import conv4_as_function, conv4_strided
from rankshot.models.as_function import by_task
from rankshot.models.network import build
from rankshot.preprocess import Preprocess
from rankshot.training.batch import Batch
from rankshot.training.inputs import Pictures
from rankshot.training.optimiser import make_optimiser
from rankshot.training.sections import OptimiserConfig
from rankshot.training.state import live_tensors
from rankshot.training.step import GraphedStep, Step, repeatable

from .measure import interleaved
from .places import FOLDER

SEED, ROUNDS = 0, 5
RATE = 0.01  # of the steps of a task: short, so that what differs by rounding alone stays alike
IMAGES, PER_CLASS = 2000, 20
# preset of MAML, channels, width
TASKS: dict[str, dict[str, tuple[str | None, int, int]]] = {
    "cpu": {"glyphs": (None, 1, 28)},
    "cuda": {
        "mini-imagenet": ("mini-imagenet", 3, 84),
        "mini-imagenet-5-shot": ("mini-imagenet-5-shot", 3, 84),
        "omniglot": ("omniglot", 1, 28),
        "omniglot-20-way": ("omniglot-20-way", 1, 28),
        "omniglot-20-way-5-shot": ("omniglot-20-way-5-shot", 1, 28),
    },
}
Block = Callable[..., tuple[Tensor, tuple[Tensor, Tensor]]]


def pooled_as_torch_derives(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """A block of Conv4, as one writes it down."""
    normal, statistics = by_task(nn.functional.conv2d(values, filters, padding=1), scale, shift, eps)
    return nn.functional.relu(nn.functional.max_pool2d(normal, 2)), statistics


def strided_as_torch_derives(
    values: Tensor, filters: Tensor, scale: Tensor, shift: Tensor, eps: float, known: None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """A block of Conv4 with strides, as one writes it down."""
    values = nn.functional.conv2d(values, filters, stride=conv4_strided.STRIDE, padding=1)
    normal, statistics = by_task(values, scale, shift, eps)
    return nn.functional.relu(normal), statistics


# network -> the module whose `block` it computes with, and what to put in its place
BLOCKS: dict[str, tuple[Any, dict[str, Block]]] = {
    "conv4": (
        conv4_as_function,
        {
            "as_torch_derives": pooled_as_torch_derives,
            "written_out": conv4_as_function.plain_block,
            "with_kernels": conv4_as_function.block,
        },
    ),
    "conv4-strided": (
        conv4_strided,
        {
            "as_torch_derives": strided_as_torch_derives,
            "written_out": conv4_strided.plain_block,
            "with_kernels": conv4_strided.block,
        },
    ),
}


def update_by(way: str, preset: str | None, channels: int, width: int) -> Callable[[], float]:
    """An update of MAML on images of noise, recorded as it is in training; call it to run it once more."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    settings = settings_for("maml", preset)
    name, filters = str(settings.get("network", "conv4")), int(settings.get("filters", 64))
    module, blocks = BLOCKS[name]
    torch.manual_seed(SEED)
    embedder = build({"name": name, "in_channels": channels, "filters": filters}, Preprocess(channels, width, width))
    context = Context(int(embedder.embedding_dim), IMAGES // PER_CLASS, settings["batch_classes"], settings["batch_size"])  # type: ignore[arg-type]
    own = {name: value for name, value in settings.items() if name in METHODS["maml"].types}
    own["rate"] = RATE
    method = make_method(METHODS.choose("maml", own), context).to(device)
    model = method.network(embedder).to(device)
    images = torch.randint(256, (IMAGES, channels, width, width), dtype=torch.uint8, device=device)
    labels = torch.arange(IMAGES, device=device) // PER_CLASS
    optimiser = make_optimiser(OptimiserConfig(), model, method, 1e-3, device)
    batch = Batch(method.sampler(labels, SEED).draw(0), torch.zeros(context.batch_size, RANDOM_NUMBERS, device=device))
    eager = Step(model, method, optimiser, Pictures(images), labels)
    module.block = blocks[way]
    with repeatable():
        recorded = GraphedStep(eager, live_tensors(model, method, optimiser), batch) if device.type == "cuda" else None
    step = recorded or eager

    def run() -> float:
        module.block = blocks[way]
        with repeatable():
            return float(step(batch)[0])  # waits for it

    return run


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results = circumstances(SEED)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, task in TASKS[device].items():
        ways = ["as_torch_derives", "written_out", *(["with_kernels"] if device == "cuda" else [])]
        contenders = {way: update_by(way, *task) for way in ways}
        losses = [run() for run in contenders.values()]
        assert max(losses) - min(losses) < 1e-2 * abs(losses[0]), losses  # the same update, but for rounding
        seconds = interleaved(contenders, ROUNDS)
        results[name] = {"seconds_an_update": seconds}
        print(name, seconds, flush=True)
        write_whole(FOLDER / f"adaptation-{device}.json", json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
