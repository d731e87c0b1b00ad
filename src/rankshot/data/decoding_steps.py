"""What `decode` does to a picture, told to programs that do not have rankshot: every export carries it."""

from __future__ import annotations

from typing import Any

from rankshot.preprocess import Preprocess

from .decoding import REDUCING_GAP, background_of, draft_of, mode_of
from .plain import BACKGROUND, SIXTEEN_BITS

FITS = {
    "stretch": "Resize all of it to width x height, whatever its form.",
    "crop": (
        "Resize the largest part in its middle that has the form of width x height: with s = min(its width / width, its "
        "height / height) that is a box of s * width by s * height pixels, whose corners need not be whole pixels."
    ),
    "pad": (
        "Resize all of it in its own form, with s = min(width / its width, height / its height) to round(s * its width) by "
        "round(s * its height), at least 1, and paste it on a canvas of width x height that is filled with background, "
        "(width - its new width) // 2 from the left and (height - its new height) // 2 from the top."
    ),
}


def decoding_steps(preprocess: Preprocess) -> dict[str, Any]:
    """As values for programs, by the names of `Preprocess` and of Pillow's arguments; and as `steps` for people, in order.

    The mean and deviation are told apart from the rest, since the network takes them off by itself.
    """
    told = preprocess.to_json()
    inside = {name: list(told.pop(name)) for name in ("mean", "deviation")}
    values = {
        **told,
        "layout": "NCHW",
        "dtype": "float32",
        "range": [0.0, 1.0],
        "inside_the_network": {**inside, "vectors_of_length": 1.0},
    }
    if preprocess.channels not in (1, 3):  # no picture file has them: arrays only, which are taken as they are
        return {**values, "steps": ["Take images of this size as they are.", *_numbers(preprocess)]}
    return {
        **values,
        "mode": mode_of(preprocess.channels),
        "draft": list(draft_of(preprocess)),
        "orientation": "EXIF",
        "transparent_on": BACKGROUND,
        "sixteen_bits_divided_by": SIXTEEN_BITS,
        "reducing_gap": REDUCING_GAP,
        "background": background_of(preprocess),
        "steps": [*_picture(preprocess), *_numbers(preprocess)],
    }


def _picture(preprocess: Preprocess) -> list[str]:
    width, height = draft_of(preprocess)
    grey = "colour becomes grey by ITU-R 601, 0.299 R + 0.587 G + 0.114 B (a JPEG's own luma)"
    colour = "grey becomes three equal channels"
    return [
        "Decode the first frame; colour profiles are ignored.",
        "A JPEG is decoded at 1/8, 1/4 or 1/2 of its size (scaled DCT, as libjpeg does it), the smallest at which it is "
        f"still at least {width} wide and {height} high; else whole. In Pillow: Image.draft(mode, draft).",
        "Turn it upright, as the orientation in its EXIF says.",
        f"Grey of 16 bits: divide by {SIXTEEN_BITS} where any value is above 255, round, and clip to 0 and 255. "
        "Floating-point grey: the same, or times 255 where no value is above 1.",
        f"What is transparent is laid on {BACKGROUND}.",
        f"Convert it to {mode_of(preprocess.channels)} of 8 bits: {grey if preprocess.channels == 1 else colour}.",
        FITS[preprocess.fit],
        f"Resize with {preprocess.interpolation} filters that grow with the scale (antialiasing, as Pillow does), after "
        f"averaging whole blocks of int(scale / {REDUCING_GAP:g}) pixels a side, where that is 2 or more. In Pillow: "
        f"Image.resize(…, reducing_gap={REDUCING_GAP:g}).",
    ]


def _numbers(preprocess: Preprocess) -> list[str]:
    invert = ["Invert it: 255 less each value, so that dark ink is bright."] if preprocess.invert else []
    return [
        *invert,
        "Divide by 255: float32 from 0 to 1, (batch, channels, height, width).",
        "Nothing else: what is inside_the_network, the network does itself.",
    ]
