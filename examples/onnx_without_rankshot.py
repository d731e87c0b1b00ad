"""Vectors of images from a network that `rankshot export` has written, without rankshot and without torch.

pip install numpy onnxruntime pillow
python examples/onnx_without_rankshot.py network.onnx first.jpg second.jpg

The file tells how pictures are made ready: see `steps` there.
"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps


def embed(paths: list[str], network: str) -> np.ndarray:
    session = onnxruntime.InferenceSession(network)
    how = json.loads(session.get_modelmeta().custom_metadata_map["rankshot"])["preprocess"]
    images = []
    for path in paths:
        with Image.open(path) as picture:
            picture.draft(how["mode"], how["draft"])  # a large JPEG is decoded at 1/2, 1/4 or 1/8 of its size
            small = fitted(plain(ImageOps.exif_transpose(picture), how), how)
        values = np.asarray(small, np.float32).reshape(how["height"], how["width"], how["channels"]) / 255
        images.append((1 - values if how["invert"] else values).transpose(2, 0, 1))
    return session.run(["embeddings"], {"images": np.stack(images)})[0]  # vectors of length 1


def plain(picture: Image.Image, how: dict) -> Image.Image:
    """8 bits, grey or colour, nothing transparent."""
    if picture.mode[0] in "IF":
        values = np.asarray(picture, float)
        scale = 255 if picture.mode == "F" and values.max() <= 1 else 1
        scale = scale / how["sixteen_bits_divided_by"] if values.max() > 255 else scale
        picture = Image.fromarray(np.rint(values * scale).clip(0, 255).astype(np.uint8))
    elif picture.has_transparency_data:
        background = Image.new("RGBA", picture.size, how["transparent_on"])
        picture = Image.alpha_composite(background, picture.convert("RGBA"))
    return picture.convert(how["mode"])


def fitted(picture: Image.Image, how: dict) -> Image.Image:
    """To the size of the network."""
    size, box = (how["width"], how["height"]), None
    if how["fit"] == "crop":  # the middle
        scale = min(picture.width / size[0], picture.height / size[1])
        width, height = min(scale * size[0], picture.width), min(scale * size[1], picture.height)
        left, top = (picture.width - width) / 2, (picture.height - height) / 2
        box = left, top, left + width, top + height
    elif how["fit"] == "pad":  # all of it, and background around
        scale = min(size[0] / picture.width, size[1] / picture.height)
        size = max(1, round(scale * picture.width)), max(1, round(scale * picture.height))
    small = picture.resize(size, Image.Resampling[how["interpolation"].upper()], box, how["reducing_gap"])
    canvas = Image.new(how["mode"], (how["width"], how["height"]), (how["background"],) * how["channels"])
    canvas.paste(small, ((canvas.width - small.width) // 2, (canvas.height - small.height) // 2))
    return canvas


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: onnx_without_rankshot.py NETWORK.onnx IMAGE …")
    vectors = embed(sys.argv[2:], sys.argv[1])
    print("cosines:")
    print(np.array2string(vectors @ vectors.T, precision=3, suppress_small=True))
