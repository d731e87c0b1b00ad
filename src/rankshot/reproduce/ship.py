"""`python -m rankshot.reproduce.ship RUN NAME`, for maintainers: the network of a run into the package, with its card."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from rankshot.files import write_whole
from rankshot.gallery.one_shot import ONE_SHOT
from rankshot.models.pretrained import CONFIG, WEIGHTS, read_json, read_notes
from rankshot.models.shipped import FOLDER
from rankshot.training.card import EVALUATION, write_card
from rankshot.training.run_folder import CLASSES

MOST_BYTES = 500_000
FILES = (WEIGHTS, CLASSES, EVALUATION, ONE_SHOT)


def ship(run: Path, name: str, folder: Path = FOLDER) -> Path:
    """Copy what a user needs, without what says where it was made. A network that was not measured is not shipped."""
    for each in (CONFIG, *FILES):
        if not (run / each).is_file():
            how = {EVALUATION: "rankshot evaluate", ONE_SHOT: "python -m rankshot.reproduce.calibrate"}.get(each)
            hint = f": {how} {run} first" if how else ""
            raise FileNotFoundError(f"there is no {run / each}{hint}")
    measured, kept = read_json(run / EVALUATION).get("update"), read_notes(run / WEIGHTS).get("update")
    if measured != kept:
        raise ValueError(
            f"{run} was measured after update {measured}, but holds update {kept}: rankshot evaluate {run} first"
        )
    if (size := (run / WEIGHTS).stat().st_size) > MOST_BYTES:
        raise ValueError(f"{run / WEIGHTS} has {size:,} bytes: at most {MOST_BYTES:,} are shipped")
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for each in FILES:
        shutil.copyfile(run / each, place / each)
    settings = {**read_json(run / CONFIG), "root": None, "device": "auto"}
    write_whole(place / CONFIG, json.dumps(settings, indent=1) + "\n")
    write_card(place, name)
    return place


if __name__ == "__main__":
    print(ship(Path(sys.argv[1]), sys.argv[2]))
