"""`rankshot export`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rankshot.gallery import Embedder
from rankshot.terminal import say

from .parsing import Files, parsed


@dataclass(frozen=True)
class Options:
    """Pass a network on: as a folder, or as one file for programs without rankshot.

    NAME.onnx and NAME.pt2 (torch.export) take float images (B, C, H, W) from 0 to 1 and give vectors of length 1, whose dot
    products are cosines. Each is read back and compared with the network first.

    In the file is the network with its weights, and with the mean and deviation of its pictures, which it takes off itself;
    and a JSON text, the property "rankshot" of ONNX, rankshot.json in a .pt2: name, fingerprint, dimensions, and under
    "preprocess" all that is done to a picture first, as values for programs and as steps for people: channels, size, fit,
    interpolation, inversion, value range, EXIF orientation, transparency, 16 bits, how large JPEGs are decoded.
    examples/onnx_without_rankshot.py reads it, with Pillow, numpy and onnxruntime alone.
    """

    model: Annotated[str, tyro.conf.Positional]
    """Run folder, weights that come with rankshot, or hf:NAME for a model of Hugging Face."""
    to: Annotated[Path, tyro.conf.Positional]
    """NAME.onnx, NAME.pt2, or a new folder, which takes the run's place in every command."""
    load: Files = ()


def main(arguments: Sequence[str]) -> int:
    options = parsed(Options, arguments, "export")
    embedder = Embedder(options.model)
    if not options.to.suffix or options.to.suffix[1:2].isdigit():  # as in network-v1.0
        say(f"{embedder.save_pretrained(options.to)}: {embedder.name}, with what is known of it")
        return 0
    apart = embedder.export(options.to)
    ink = ", dark ink made bright" if embedder.preprocess.invert else ""
    shape = ", ".join(map(str, embedder.preprocess.shape))
    say(f"{options.to}: images (B, {shape}) from 0 to 1{ink} -> (B, {embedder.dimensions})")
    say(f"  read back, its vectors are within {apart:.1g} of the network's")
    return 0
