"""Images survive the way into a page."""

import base64
import io

import numpy as np
from PIL import Image

from rankshot.report.picture import data_uri


def back(uri):
    head, content = uri.split(",")
    return head, Image.open(io.BytesIO(base64.b64decode(content)))


def test_drawings_without_loss():
    image = np.random.default_rng(0).integers(0, 256, (1, 28, 20), dtype=np.uint8)
    head, picture = back(data_uri(image))
    assert head == "data:image/png;base64"
    assert np.array_equal(np.asarray(picture), image[0])


def test_photographs_small():
    y, x = np.mgrid[0:84, 0:84]
    image = np.stack([3 * x, 3 * y, (x + y)]).astype(np.uint8)
    head, picture = back(data_uri(image))
    assert head == "data:image/webp;base64"
    assert picture.size == (84, 84)
    assert np.abs(np.asarray(picture.convert("RGB")).transpose(2, 0, 1).astype(int) - image).mean() < 6
