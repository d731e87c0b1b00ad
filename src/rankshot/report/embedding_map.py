"""A map of a few unseen classes: images that the network embeds near each other lie near each other."""

from __future__ import annotations

from html import escape

import torch
from torch import Tensor, nn

from rankshot.data import ImageSet
from rankshot.fewshot import Retrieval, draw_episodes, embed_all

from .picture import data_uri

CLASSES, PER_CLASS = 8, 20
SIZE, THUMBNAIL = 720, 24
ROUNDS = 600


def embedding_map(model: nn.Module, images: ImageSet, seed: int) -> str:
    """Thumbnails, framed in the colour of their class, where t-SNE puts them."""
    labels = torch.from_numpy(images.labels)
    task = Retrieval(way=min(CLASSES, len(images.classes)), per_class=min(PER_CLASS, images.smallest_class))
    drawn = draw_episodes(labels, task, 1, seed)[0]
    places = layout(embed_all(model, images, drawn.flatten()).cpu())
    places = (places - places.amin(0)) / (places.amax(0) - places.amin(0)).clamp(min=1e-9) * (SIZE - THUMBNAIL)
    parts, keys = [], []
    for number, indices in enumerate(drawn):
        name = escape(images.classes[int(labels[indices[0]])], quote=True)
        keys.append(f'<span class="key s{number}">{name}</span>')
        for place, index in zip(places[number * task.per_class :], indices, strict=False):
            x, y = place.tolist()
            at = f'x="{x:.1f}" y="{y:.1f}" width="{THUMBNAIL}" height="{THUMBNAIL}"'
            picture = data_uri(images.images[int(index)])
            parts.append(f'<g><title>{name}</title><image href="{picture}" {at}/><rect class="frame s{number}" {at}/></g>')
    what = f"{task.way} classes with {task.per_class} images each, placed by t-SNE of their embeddings"
    svg = f"<svg viewBox='-2 -2 {SIZE + 4} {SIZE + 4}' role='img' aria-label='{what}'>{''.join(parts)}</svg>"
    return (
        f"<p>{what}. A good embedding gathers each class in a place of its own.</p>"
        f"<figure class=map>{svg}<div class=legend>{''.join(keys)}</div></figure>"
    )


def layout(vectors: Tensor, perplexity: float = 15.0) -> Tensor:
    """(n, D) -> (n, 2): t-SNE (van der Maaten & Hinton, 2008), exact, from the two main directions: no randomness."""
    vectors = vectors.double() - vectors.double().mean(0)
    vectors = nn.functional.pad(vectors, (0, max(0, 2 - vectors.shape[1])))  # two directions, whatever there is
    n = len(vectors)
    near = _neighbourhoods(torch.cdist(vectors, vectors).square(), min(perplexity, (n - 1) / 3))
    near = (near + near.T) / (2 * n)
    _, _, directions = torch.linalg.svd(vectors, full_matrices=False)
    # The sign of a singular vector is arbitrary: make its largest entry positive, so that a map is not mirrored by chance.
    directions = directions[:2] * directions[:2].gather(1, directions[:2].abs().argmax(1, keepdim=True)).sign()
    places: Tensor = vectors @ directions.T
    places = places / places.std().clamp(min=1e-12) * 1e-4
    speed = torch.zeros_like(places)
    for number in range(ROUNDS):
        exaggeration, momentum = (4.0, 0.5) if number < ROUNDS // 4 else (1.0, 0.8)
        closeness = 1 / (1 + torch.cdist(places, places).square())
        closeness.fill_diagonal_(0)
        pull = (exaggeration * near - closeness / closeness.sum()) * closeness
        slope = 4 * (pull.sum(1, keepdim=True) * places - pull @ places)
        speed = momentum * speed - max(n / 12, 10.0) * slope
        places = places + speed
    return places


def _neighbourhoods(distances: Tensor, perplexity: float) -> Tensor:
    """(n, n) squared distances -> how likely each row picks each other one, with `perplexity` effective neighbours."""
    own = torch.eye(len(distances), dtype=torch.bool)
    low, high = torch.full((len(distances), 1), 1e-6).double(), torch.full((len(distances), 1), 1e8).double()
    chances = torch.empty_like(distances)
    for _ in range(60):
        middle = (low * high).sqrt()
        chances = (-distances * middle).masked_fill(own, -torch.inf).softmax(1)
        entropy = -(chances * chances.clamp(min=1e-300).log()).sum(1, keepdim=True)
        too_wide = entropy > torch.tensor(perplexity).double().log()
        low, high = torch.where(too_wide, middle, low), torch.where(too_wide, high, middle)
    return chances
