"""The mistakes that a classifier was surest about, and where it looked."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from rankshot.data.decoding import Undecodable
from rankshot.gallery.answers import Answered
from rankshot.gallery.embedder import Embedder
from rankshot.gallery.looking import similarity_map
from rankshot.gallery.pictures import pixels_of

from .picture import data_uri

MOST = 8


def mistakes(answered: Sequence[Answered], embedder: Embedder) -> str:
    """Each beside the example that it is most like; what makes the two alike is light."""
    wrong = sorted((each for each in answered if each.truth != each.answer), key=lambda each: -(each.probability or 0))
    shown = wrong[:MOST]
    if not shown:
        return "<p>None.</p>"
    rows = [_row(each, embedder) for each in shown]
    of = f"{len(shown)} of {len(wrong)}" if len(wrong) > len(shown) else str(len(wrong))
    about = (
        f"{of} mistake{'s' * (len(wrong) > 1)}, the surest first; to the right the example of the class that was answered "
        "that the image is most like. Parts that matter for the similarity of the two are light: the cosine falls the most "
        "when they are covered. An image that was taken for none of the classes stands beside the nearest of all examples."
    )
    return f"<p>{about}</p><div class=mistakes>{''.join(rows)}</div>"


def _row(each: Answered, embedder: Embedder) -> str:
    both = [pixels_seen(name, embedder) for name in (each.image, each.example)]
    vectors = [None if pixels is None else embedder([pixels])[0] for pixels in both]
    figures = []
    for pixels, other, name in zip(both, reversed(vectors), (each.image, each.example), strict=True):
        if pixels is not None:
            shade = "" if other is None else _shade(similarity_map(embedder, pixels, other))
            told = escape(name, quote=True)
            figures.append(f'<span class=looked><img src="{data_uri(pixels)}" alt="{told}" title="{told}">{shade}</span>')
    sure = "" if each.probability is None else f", {100 * each.probability:.0f} % sure"
    told = f"<b>{escape(each.truth)}</b> taken for <b>{escape(each.answer)}</b>{sure}<br>{escape(each.image)}"
    return f"<figure>{''.join(figures)}<figcaption>{told}</figcaption></figure>"


def pixels_seen(name: str, embedder: Embedder) -> NDArray[np.uint8] | None:
    """As the network sees the file; None where it is gone."""
    try:
        return pixels_of(name, embedder.preprocess)
    except Undecodable:
        return None


def _shade(falls: NDArray[np.float32]) -> str:
    """Parts that do not count, darkened."""
    most = max(float(falls.max()), 1e-6)
    size = len(falls)
    parts = "".join(
        f'<rect x="{column}" y="{row}" width="1" height="1" fill-opacity="{0.75 * (1 - max(0.0, fall) / most):.2f}"/>'
        for row, line in enumerate(falls.tolist())
        for column, fall in enumerate(line)
    )
    return f'<svg viewBox="0 0 {size} {size}" preserveAspectRatio="none" aria-hidden="true">{parts}</svg>'
