"""Queries with what they retrieved, in order: right ones and wrong ones framed."""

from __future__ import annotations

from html import escape

import torch
from torch import Tensor, nn

from rankshot import ranking
from rankshot.data import ImageSet
from rankshot.fewshot import Retrieval, draw_episodes, embed_all

from .picture import data_uri

QUERIES = 8


def retrievals(model: nn.Module, images: ImageSet, seed: int) -> str:
    """Some queries of one retrieval episode, from the worst to the best."""
    labels = torch.from_numpy(images.labels)
    task = Retrieval(way=min(20, len(images.classes)), per_class=min(10, images.smallest_class))
    drawn = draw_episodes(labels, task, 1, seed).flatten()
    embeddings = embed_all(model, images, drawn).cpu()
    similarities = embeddings @ embeddings.T
    relevance, valid = ranking.relevance_of(labels[drawn])
    precisions = ranking.average_precision(similarities, relevance, valid)
    order = similarities.fill_diagonal_(-2).argsort(dim=-1, descending=True, stable=True)[:, : task.per_class - 1]
    rows = [_row(images, drawn, int(query), order[query], float(precisions[query])) for query in spread(precisions)]
    pool = f"{task.way} classes with {task.per_class} images each"
    ranks = "".join(f"<th scope=col>{number}</th>" for number in range(1, order.shape[1] + 1))
    head = f"<thead><tr><th></th><th scope=col>query</th>{ranks}</tr></thead>"
    return (
        f"<p>Every query ranks the {len(drawn) - 1} other images of {pool}. Here are {len(rows)} of them, from the worst "
        f"to the best, with the first {order.shape[1]} images that they retrieved, as many as there are to find: "
        f"<span class='key right'>✓ the same class</span> "
        f"<span class='key wrong'>✗ another class</span>. AP is the average precision of the whole ranking.</p>"
        f"<div class=scroll><table class=retrievals>{head}<tbody>{''.join(rows)}</tbody></table></div>"
    )


def spread(values: Tensor) -> Tensor:
    """Which ones to show: at equal steps from the lowest to the highest value, so that nothing is picked by hand."""
    steps = torch.linspace(0, len(values) - 1, min(QUERIES, len(values))).round().long()
    return values.argsort(stable=True)[steps]


def _row(images: ImageSet, drawn: Tensor, query: int, order: Tensor, precision: float) -> str:
    own = int(images.labels[drawn[query]])
    cells = [_framed(images, int(drawn[at]), own) for at in order]
    name = escape(images.classes[own])
    asked = f'<img src="{data_uri(images.images[drawn[query]])}" alt="query: {name}" title="query: {name}">'
    return f"<tr><th scope=row>AP {100 * precision:.0f} %</th><td class=query>{asked}</td>{''.join(cells)}</tr>"


def _framed(images: ImageSet, index: int, own: int) -> str:
    label = int(images.labels[index])
    verdict, mark = ("right", "✓") if label == own else ("wrong", "✗")
    name = escape(f"{verdict}: {images.classes[label]}", quote=True)
    return f'<td class={verdict}><img src="{data_uri(images.images[index])}" alt="{name}" title="{name}"><i>{mark}</i></td>'
