"""What an export tells of how pictures are made ready. That it is true, and enough, tests/models/test_export.py shows."""

import json

from rankshot.data.decoding_steps import decoding_steps
from rankshot.preprocess import Preprocess


def test_everything_that_a_program_needs():
    told = decoding_steps(Preprocess(1, 20, 30, "pad", "lanczos", mean=(0.5,), deviation=(0.25,), invert=True))
    steps = told.pop("steps")
    assert told == {
        "channels": 1,
        "height": 20,
        "width": 30,
        "fit": "pad",
        "interpolation": "lanczos",
        "invert": True,
        "mode": "L",
        "draft": [60, 40],
        "orientation": "EXIF",
        "transparent_on": "white",
        "sixteen_bits_divided_by": 257,
        "reducing_gap": 2.0,
        "background": 255,
        "layout": "NCHW",
        "dtype": "float32",
        "range": [0.0, 1.0],
        "inside_the_network": {"mean": [0.5], "deviation": [0.25], "vectors_of_length": 1.0},
    }
    assert json.loads(json.dumps(told)) == told
    assert steps[0].startswith("Decode")
    assert "paste it on a canvas" in " ".join(steps)
    assert steps.index("Invert it: 255 less each value, so that dark ink is bright.") == len(steps) - 3


def test_no_step_is_told_that_is_not_taken():
    told = decoding_steps(Preprocess(3, 84, 84))
    assert (told["mode"], told["background"], told["invert"]) == ("RGB", 0, False)
    assert not any("Invert" in step or "canvas" in step or "middle" in step for step in told["steps"])
    assert any("largest part in its middle" in step for step in decoding_steps(Preprocess(3, 84, 84, "crop"))["steps"])


def test_channels_that_no_picture_has():
    told = decoding_steps(Preprocess(5, 8, 8))
    assert "mode" not in told
    assert told["steps"][0] == "Take images of this size as they are."
