"""Files as cameras make them: JPEG, in colour, of any size, with EXIF that turns them and tells where they were taken."""

import io

import numpy as np
from PIL import Image

PLACE = "taken at home"
COLOURS = {"sunset": ((230, 90, 30), (120, 20, 60)), "meadow": ((60, 160, 220), (40, 130, 30))}  # above, below
TURNS = {1: 0, 3: 2, 6: 1, 8: 3}  # orientation -> quarters that the camera was turned


def photograph(kind, seed=0, size=(320, 240), orientation=1):
    """The bytes of a JPEG of `size` (width, height) as it is seen: one colour above another, with a grain of its own.

    A sunset has upright stripes, a meadow lies flat.
    """
    random = np.random.default_rng(seed)
    width, height = size
    y, x = np.mgrid[:height, :width] / max(size)
    above, below = (np.array(colour, float) for colour in COLOURS[kind])
    share = np.clip((y * max(size) / height - 0.5) * 8 + 0.5, 0, 1)[..., None]
    waves = np.sin((x if kind == "sunset" else y) * 60 + random.uniform(0, 6))
    picture = above * (1 - share) + below * share + 25 * waves[..., None] + random.normal(0, 6, (height, width, 1))
    stored = np.rot90(np.clip(picture, 0, 255).astype(np.uint8), TURNS[orientation])
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = PLACE
    content = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(stored)).save(content, "JPEG", quality=92, exif=exif)
    return content.getvalue()
