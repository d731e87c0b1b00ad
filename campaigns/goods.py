"""Good folders that inputs are made from: pictures, a run and one begun with it, a gallery, a classifier, prepared data.

All are made by the command line and the library as they are now, in folders that refer to one another by relative names.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PIL import Image

CLASSES, PER_CLASS, SIDE = 8, 4, 32
OPTION = re.compile(r"(?:^|, |^-\w [^-]*, )(--[a-z][a-z-]*)")
RATES = [0.01, 0.1, 0.5]
OPTIONS = "options.json"  # command -> its options, as its help tells them
COMMANDS = (
    "data prepare", "data list", "data verify", "data show", "train", "evaluate", "classify", "gallery add",
    "gallery info", "gallery list", "gallery duplicates", "gallery delete", "gallery rebuild",
    "gallery rescue", "search", "export", "reproduce",
)  # fmt: skip
SETTINGS = {
    "filters": 8,
    "batch_classes": 2,
    "batch_size": 6,
    "updates": 4,
    "log_every": 1,
    "validate_every": 2,
    "checkpoint_every": 2,
    "validation_episodes": 3,
    "device": "cpu",
}


def make_goods(folder: Path, environment: Mapping[str, str]) -> None:
    """In a child: it trains. `environment` is that of an arena whose work folder is `folder`."""
    os.environ.update(environment)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    os.chdir(folder)
    make_pictures(Path("pictures"))

    from rankshot import data
    from rankshot.cli.main import main
    from rankshot.gallery import FewShotClassifier, Gallery
    from rankshot.training import TrainConfig, train

    prepared = data.prepared("pictures", size=SIDE)
    train(TrainConfig.of(data=prepared.name, **SETTINGS), "run")
    train(TrainConfig.of(data=prepared.name, init="run", **SETTINGS), "begun")
    config = json.loads(Path("begun/config.json").read_text())
    Path("begun/config.json").write_text(json.dumps({**config, "network": {**config["network"], "init": "run"}}, indent=1))
    one_shot = {"rates": RATES, "thresholds": [0.2, 0.5, 0.9], "caught": [0.5, 0.7, 0.9]}
    Path("run/one_shot.json").write_text(json.dumps(one_shot))
    for command in (
        ["evaluate", "run", "--episodes", "3"],
        ["gallery", "add", "gallery", "pictures", "--model", "run", "--metadata", "colour=red"],
        ["gallery", "delete", "gallery", "pictures/c7/3.png"],
    ):
        if main(command):
            raise RuntimeError(f"a good input cannot be made: rankshot {' '.join(command)}")
    with Gallery("vectors", dimensions=3) as vectors:
        vectors.add([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], ids=["x", "y", "z"], metadata=[{"n": 1}, {"n": 2}, {}])
    paths = sorted(Path("pictures").glob("*/[012].png"))
    classifier = FewShotClassifier("run", reject=0.1, unknown="none").fit(paths, [path.parent.name for path in paths])
    classifier.save_pretrained("classifier")
    Path(OPTIONS).write_text(json.dumps({command: options_of(main, command) for command in COMMANDS}))


def options_of(main: Callable[[Sequence[str]], int], command: str) -> list[str]:
    """As the help tells them."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    return sorted({option for line in output.getvalue().splitlines() for option in OPTION.findall(line.lstrip("│ "))})


def make_pictures(folder: Path, classes: int = CLASSES, per_class: int = PER_CLASS) -> None:
    """folder/c0/0.png …: a colour each class, with dots."""
    for label in range(classes):
        (folder / f"c{label}").mkdir(parents=True)
        for number in range(per_class):
            picture(label, number).save(folder / f"c{label}" / f"{number}.png")


def picture(label: int, number: int, side: int = SIDE) -> Image.Image:
    chance = random.Random(f"{label}/{number}")
    image = Image.frombytes("RGB", (4, 4), chance.randbytes(48)).resize((side, side))
    image.paste((30 * label, 255 - 30 * label, 40 * number), (0, 0, side // 2, side // 2))
    return image
