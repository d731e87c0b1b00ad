"""An image as text that a page can hold."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

from rankshot.data.decoding import picture_of


def data_uri(image: NDArray[np.uint8]) -> str:
    """(C, H, W) of 1 or 3 channels -> "data:image/…": drawings without loss, photographs as WebP."""
    grey = len(image) == 1
    kind, file = ("png" if grey else "webp"), io.BytesIO()
    picture_of(image).save(file, kind, **({"optimize": True} if grey else {"quality": 80}))
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
