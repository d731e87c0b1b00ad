"""`python -m rankshot.reproduce.ship RUN NAME`, for maintainers: the network of a run into the package, with its card.

To be done where results/ lies: the card tells the speed that `python -m benchmarks.embedding RUN` has found.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rankshot.models.folder_files import CLASS_MEANS, CLASSES, CONFIG, EVALUATION, ONE_SHOT, WEIGHTS
from rankshot.models.saving import copy_pretrained
from rankshot.models.shipped import FOLDER
from rankshot.schema import read_json
from rankshot.tensors import read_notes
from rankshot.training.card import write_card

MOST_BYTES = 26_000_000
FILES = (CLASSES, EVALUATION, ONE_SHOT)
SPEED = Path("results", "benchmarks", "embedding-cpu.json")
ABOUT = {  # what the settings of the run do not tell
    "resnet12-mini-imagenet": (
        "Before its head learned by ranking, the network learned from the same 64 classes: to tell them apart, and by how "
        "many quarters an image was turned; then once more, with its own earlier answers to go by (self-distillation). "
        "`rankshot reproduce photographs` makes all of it, and docs/experiments.md tells what else was tried."
    )
}


def ship(run: Path, name: str, folder: Path = FOLDER) -> Path:
    """Copy what a user needs, without what says where it was made. A network that was not measured is not shipped."""
    for file_name in (CONFIG, WEIGHTS, *FILES):
        if not (run / file_name).is_file():
            how = {EVALUATION: "rankshot evaluate", ONE_SHOT: "python -m rankshot.reproduce.calibrate"}.get(file_name)
            hint = f": {how} {run} first" if how else ""
            raise FileNotFoundError(f"there is no {run / file_name}{hint}")
    measured, kept = read_json(run / EVALUATION).get("update"), read_notes(run / WEIGHTS).get("update")
    if measured != kept:
        raise ValueError(
            f"{run} was measured after update {measured}, but holds update {kept}: rankshot evaluate {run} first"
        )
    if (size := (run / WEIGHTS).stat().st_size) > MOST_BYTES:
        halved = "python -m rankshot.reproduce.halve makes them half as many"
        raise ValueError(f"{run / WEIGHTS} has {size:,} bytes: at most {MOST_BYTES:,} are shipped; {halved}")
    if (folder / name).exists():  # an earlier network of this name
        shutil.rmtree(folder / name)
    shipped = copy_pretrained(run, folder / name, (*FILES, CLASS_MEANS))
    write_card(shipped, name, "\n\n".join(filter(None, (ABOUT.get(name), speed_of(name)))))
    return shipped


def speed_of(name: str, measured: Path = SPEED) -> str:
    """A sentence on how fast it is on a CPU, where that was measured."""
    found = read_json(measured) if measured.is_file() else {"networks": {}}
    if name not in found["networks"]:
        return ""
    rate = found["networks"][name]["images_a_second"]["pictures"]
    cores = f"{found['threads']} cores of a CPU ({found['processor']})"
    return f"{cores} embed {rate:.0f} decoded pictures a second ({found['date']})."


if __name__ == "__main__":
    print(ship(Path(sys.argv[1]), sys.argv[2]))
