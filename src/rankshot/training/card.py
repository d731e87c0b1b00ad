"""The model card of a run: what the network is, how it was made, how good it is, how to use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Required, TypedDict

from rankshot.data.loading import TERMS
from rankshot.fewshot import Answerer, HasRule
from rankshot.files import write_whole
from rankshot.models.folder_files import CARD, CONFIG, EVALUATION, WEIGHTS
from rankshot.models.huggingface_folder import without_path
from rankshot.models.network import embedder_in, is_network
from rankshot.models.pretrained import described_in
from rankshot.models.saving import without_places
from rankshot.models.shipped import folder_of
from rankshot.schema import parsed, read_json
from rankshot.tensors import read_notes
from rankshot.version import __version__

from .config import TrainConfig

TEXT = """\
---
library_name: rankshot
tags: [few-shot-learning, image-retrieval, image-classification]
---
# {name} trained on {data} by {method}

{what} Made by
rankshot {version}; these are the weights after {update} of {updates} updates, {which}.

```python
import rankshot

model = rankshot.from_pretrained("{place}")
{use}
```

{images}{more}

{measured}
## Training data

{terms}.

## Settings

{settings}
"""

INPUTS = {
    "glyphs": "Images of 28x28 pixels, ink 1 on 0.",
    "omniglot": "Images of 28x28 pixels, ink 1 on 0: photographs of dark ink on white paper must be inverted.",
    "mini-imagenet": "Photographs of 84x84 pixels, in colour.",
    "cub": "Photographs of 64x64 pixels, in colour, cut to the bird.",
}
OWN_IMAGES = "Images of the person who trained it; whoever passes the weights on answers for them"
EMBEDS = (
    "An embedding network: images of one class come out near each other, also of classes that it has never seen.",
    "embeddings = model(images)  # float (B, {channels}, H, W), from 0 to 1 -> (B, D); compare them by their cosine",
)
RULES = (
    "An embedding network with a rule of its own to classify by, also among classes that it has never seen.",
    "embeddings = model(images)  # float (B, {channels}, H, W), from 0 to 1 -> (B, D); model.class_scores tells classes",
)
ANSWERS = (
    "A network that solves a few-shot task from its labelled images, also of classes that it has never seen.",
    "scores = model.answer(support, labels, queries)  # images float (…, {channels}, H, W), labels from 0",
)


class Score(TypedDict):
    """A task's mean, and its 95 % interval."""

    mean: float
    interval: float


class Evaluation(TypedDict, total=False):
    """What `rankshot evaluate` writes, as far as a card tells it."""

    update: str | None
    episodes: Required[int]
    norm: Required[str]
    date: Required[str]
    split: Required[str]
    data: Required[str]
    tasks: Required[dict[str, Score]]


def write_card(folder: Path, place: str = "path/to/this/folder", more: str = "") -> None:
    """README.md, from what else lies in the folder; `place` is what to load it by, `more` a paragraph about it."""
    config, network = TrainConfig.from_json(folder / CONFIG), described_in(folder)
    notes = read_notes(folder / WEIGHTS)
    measured = ""
    if validation := parsed(notes.get("validation", "{}"), dict[str, Score], f"{folder / WEIGHTS}: validation"):
        measured += f"## On validation classes\n\n{_table(validation)}\n"
    if tested := _tested(folder, notes.get("update")):
        how = f"{tested['episodes']} episodes a task, batch norm by {tested['norm']} statistics, {tested['date']}"
        measured += f"\n## On {tested['split']} classes of {tested['data']}\n\n{how}\n\n{_table(tested['tasks'])}\n"
    embedder = embedder_in(network)
    kind = network["name"]
    what, use = ANSWERS if is_network(kind, Answerer) else RULES if is_network(kind, HasRule) else EMBEDS
    if embedder.get("mirror"):
        what += " It embeds an image as the mean of what it makes of it and of its mirror image."
    shown = without_places(config.flat())
    text = TEXT.format(
        name=network["name"],
        place=place,
        what=what,
        use=use.format(channels=embedder.get("in_channels", "C")),
        data=shown["data"],
        method=config.method.name,
        updates=config.run.updates,
        update=notes.get("update", "some"),
        version=notes.get("rankshot", __version__),
        which="the best by validation so far" if config.validation.every else "the last",
        measured=measured,
        more=f"\n\n{more}" if more else "",
        images=INPUTS.get(config.data.name, "Images as those that it was trained on: colours, size and background count."),
        terms=terms_of(config),
        settings="\n".join(f"- {name}: {json.dumps(value)}" for name, value in shown.items()),
    )
    write_whole(folder / CARD, text)


def terms_of(config: TrainConfig) -> str:
    """Of all that a network has learned from, also before this run."""
    terms, began_with = "", set[str]()
    while True:
        terms += TERMS.get(config.data.name, OWN_IMAGES)
        if config.network.init is None or config.network.init in began_with:
            return terms
        began_with.add(config.network.init)
        terms += f". It began with the weights of {without_path(config.network.init)}"
        try:
            place = folder_of(config.network.init) / CONFIG
            config = TrainConfig.from_json(place)
            knows = "data" in read_json(place)
        except (OSError, ValueError):
            knows = False
        if not knows:
            return f"{terms}, whose own terms hold too"
        terms += ": "


def _tested(folder: Path, update: str | None) -> dict[str, Any] | None:
    """What `rankshot evaluate` found, if it was about these very weights; a card is no reason to fail."""
    try:
        tested: dict[str, Any] = read_json(folder / EVALUATION, Evaluation)
    except (OSError, ValueError):
        return None
    return tested if tested.get("update") == update else None


def _table(results: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [f"| {task} | {100 * score['mean']:.2f} ± {100 * score['interval']:.2f} |" for task, score in results.items()]
    return "\n".join(["| task | accuracy or mAP, %, with its 95 % interval |", "|---|---:|", *rows])
