"""`python -m rankshot.reproduce.calibrate RUN [ROOT]`, for maintainers: what "none of these" needs beside the weights.

The means of the classes that the network was trained on, and thresholds at one shot.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

from rankshot.data import ImageSet, load
from rankshot.fewshot import class_means
from rankshot.fewshot.evaluation import embed_all
from rankshot.files import write_whole
from rankshot.gallery.one_shot import EPISODES, SEED, WAY, OneShot, measured
from rankshot.models import from_pretrained
from rankshot.models.folder_files import CONFIG, ONE_SHOT
from rankshot.training import TrainConfig


def other_test_classes(images: ImageSet, remainder: int) -> ImageSet:
    """Every second class: 0, those that a threshold may come from; 1, those that are left to judge it by."""
    return images.only(np.flatnonzero(images.labels % 2 == remainder))


def calibrate(folder: Path, root: str | None = None) -> OneShot:
    """On validation classes; on every second class of test where the run has learned from those of validation."""
    config = TrainConfig.from_json(folder / CONFIG)
    name = config.data.name
    if config.data.split == "train":
        images, which = load(name, "val", root), f"validation classes of {name}"
    else:
        images, which = load(name, "test", root), f"every second test class of {name}"
        images = other_test_classes(images, 0)
    images = images.with_rotations() if config.data.rotations else images
    network = from_pretrained(folder)
    learned = load(name, config.data.split, root)
    learned_means = class_means.measured(network, learned.with_rotations() if config.data.rotations else learned)
    vectors, labels = embed_all(network, images), torch.from_numpy(np.asarray(images.labels))
    means = learned_means if class_means.help_reject(learned_means, vectors, labels) else None
    class_means.write(folder, means)
    one_shot = measured(vectors, labels, means)
    protocol = {"classes": which, "way": WAY, "episodes": EPISODES, "seed": SEED}
    write_whole(folder / ONE_SHOT, json.dumps({**one_shot._asdict(), "measured_on": protocol}, indent=1) + "\n")
    return one_shot


if __name__ == "__main__":
    print(calibrate(Path(sys.argv[1]), *sys.argv[2:]))
