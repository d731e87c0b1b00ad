"""Training with images on the GPU and on the CPU: `python -m benchmarks.images_on` on a GPU, with mini-ImageNet prepared.

Conv4 by mAP-DLM, batches of 128, one after the other in turn; and whether the weights are the same to the last bit. Into
results/benchmarks/images_on.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import torch

from rankshot.hardware import circumstances
from rankshot.methods import settings_for
from rankshot.tensors import read_tensors
from rankshot.training import Callback, TrainConfig, train
from rankshot.training.run_folder import STATE

from .places import FOLDER

SEED, DATA = 0, "mini-imagenet"
PLACES = ("cuda", "cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER / "images_on.json")
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    settings = {**settings_for("map-dlm"), "data": DATA, "augment": ("flip", "crop"), "updates": options.updates}
    settings |= {"validate_every": 0, "checkpoint_every": options.updates, "seed": SEED}
    rates: dict[str, list[float]] = {place: [] for place in PLACES}
    states = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for place in PLACES:
                run = Path(folder) / f"{place}-{number}"
                status = train(TrainConfig.of(**settings, images_on=place), run, progress=Callback())
                rates[place].append(status.update / status.seconds)
                states[place] = read_tensors(run / STATE)
                print(place, f"{rates[place][-1]:.0f} updates a second", flush=True)
    medians = {place: statistics.median(values) for place, values in rates.items()}
    same = all(torch.equal(tensor, states["cpu"][name]) for name, tensor in states["cuda"].items())
    found = {"updates_a_second": rates, "ratio": medians["cpu"] / medians["cuda"], "same_weights": same}
    print(found)
    results = {**circumstances(SEED), "data": DATA, "updates": options.updates, **found}
    options.to.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
