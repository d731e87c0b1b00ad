"""A map of a few unseen classes: images that the network embeds near each other lie near each other."""

from __future__ import annotations

from html import escape

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankshot.data import ImageSet
from rankshot.fewshot import Retrieval, draw_episodes, embed_all

from .picture import data_uri

CLASSES, PER_CLASS = 8, 20
SIZE, THUMBNAIL = 720, 24
PERPLEXITY, MIN_POINTS = 15.0, 4


def embedding_map(model: nn.Module, images: ImageSet, seed: int) -> str:
    """Thumbnails, framed in the colour of their class, where t-SNE puts them."""
    labels = torch.from_numpy(images.labels)
    task = Retrieval(way=min(CLASSES, len(images.classes)), per_class=min(PER_CLASS, images.smallest_class))
    drawn = draw_episodes(labels, task, 1, seed)[0]
    positions = layout(embed_all(model, images, drawn.flatten()).cpu())
    spread = np.maximum(positions.max(0) - positions.min(0), 1e-9)
    positions = (positions - positions.min(0)) / spread * (SIZE - THUMBNAIL)
    parts, keys = [], []
    for number, indices in enumerate(drawn):
        name = escape(images.classes[int(labels[indices[0]])], quote=True)
        keys.append(f'<span class="key s{number}">{name}</span>')
        for position, index in zip(positions[number * task.per_class :], indices, strict=False):
            x, y = position.tolist()
            at = f'x="{x:.1f}" y="{y:.1f}" width="{THUMBNAIL}" height="{THUMBNAIL}"'
            picture = data_uri(images.images[int(index)])
            parts.append(f'<g><title>{name}</title><image href="{picture}" {at}/><rect class="frame s{number}" {at}/></g>')
    what = f"{task.way} classes with {task.per_class} images each, placed by t-SNE of their embeddings"
    svg = f"<svg viewBox='-2 -2 {SIZE + 4} {SIZE + 4}' role='img' aria-label='{what}'>{''.join(parts)}</svg>"
    return (
        f"<p>{what}. A good embedding gathers each class in a place of its own.</p>"
        f"<figure class=map>{svg}<div class=legend>{''.join(keys)}</div></figure>"
    )


def layout(vectors: Tensor) -> NDArray[np.float32]:
    """(n, D) -> (n, 2), by t-SNE from the two main directions. The same vectors always lie at the same places."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise ImportError("the map of a report is drawn with scikit-learn: pip install 'rankshot[train]'") from error
    if len(vectors) < MIN_POINTS or not bool((vectors != vectors[0]).any()):  # nothing to spread
        return np.zeros((len(vectors), 2), np.float32)
    start = nn.functional.pad(vectors, (0, max(0, 2 - vectors.shape[1])))  # two directions, whatever there is
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    placed: NDArray[np.float32] = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(start.numpy())
    return placed
