"""Which classes a network takes for one another, in one episode."""

from __future__ import annotations

import torch
from torch import nn

from rankshot.data import ImageSet
from rankshot.fewshot import Classification, draw_episodes, embed_all
from rankshot.fewshot.rules import scores_by
from rankshot.gallery.answers import Answered

from .confusions import MOST_CLASSES, confusions
from .picture import data_uri


def mixed_up(model: nn.Module, images: ImageSet, seed: int, rule: str) -> str:
    """A confusion matrix of as many classes as it has room for, from five labelled images each, or as many as there are."""
    per_class = min(20, images.smallest_class)
    way, shot = min(MOST_CLASSES, len(images.classes)), max(1, min(5, per_class // 2))
    task = Classification(way, shot, per_class)
    (drawn,) = draw_episodes(torch.from_numpy(images.labels), task, 1, seed)
    vectors = embed_all(model, images, drawn.flatten()).view(way, per_class, -1)
    support, queries = (part.flatten(0, 1) for part in (vectors[:, :shot], vectors[:, shot:]))
    taught = torch.arange(way, device=vectors.device).repeat_interleave(shot)
    best = scores_by(rule, support[None], taught, way, queries[None])[0].max(-1)  # one episode
    names = [images.classes[int(images.labels[index])] for index in drawn[:, 0]]
    asked = drawn[:, shot:].flatten().tolist()
    answered = [
        Answered(str(index), names[place // (per_class - shot)], names[answer], score, "")
        for place, (index, answer, score) in enumerate(zip(asked, best.indices.tolist(), best.values.tolist(), strict=True))
    ]
    examples = {name: str(index) for name, index in zip(names, drawn[:, 0].tolist(), strict=True)}
    about = f"{way} classes with {shot} labelled {'image' if shot == 1 else 'images'} each, by the rule {rule}."
    matrix = confusions(answered, examples, lambda name: data_uri(images.images[int(name)]) if name else None)
    return f"<p>{about}</p>{matrix}"
