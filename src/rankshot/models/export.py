"""An embedding network as one file for programs without rankshot: `torch.export` (.pt2) or ONNX (.onnx).

In: float images (B, C, H, W) from 0 to 1, as many as there are. Out: unit vectors (B, D). The file is read back and
compared with the network before it takes its place.
"""

from __future__ import annotations

import copy
import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot.files import write_whole
from rankshot.vectors import computable, unit_vectors

AGREES = 1e-4
ABOUT = "rankshot.json"  # in the archive of torch.export; in ONNX the property "rankshot"
BATCHES = (1, 5)  # to compare on
Answer = Callable[[Tensor], Tensor]


class UnitEmbedding(nn.Module):
    """What cosines are taken of."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return unit_vectors(computable(self.network(images)))


def export(network: nn.Module, shape: tuple[int, int, int], path: str | Path, about: Mapping[str, Any]) -> float:
    """Write the file that the name asks for; returns how far its embeddings are from the network's at most.

    about   kept in the file, as JSON
    """
    path = Path(path)
    if path.suffix not in KINDS:
        raise ValueError(f"{path} must end in {' or '.join(KINDS)}, which tells what to write")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    if path.is_file():
        raise FileExistsError(f"{path} exists already: name a new file")
    alone = UnitEmbedding(copy.deepcopy(network)).cpu().float().eval()
    alone = alone.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]  # torch's stubs lack it
    images = torch.rand(BATCHES[-1], *shape, generator=torch.Generator().manual_seed(0))
    write, read = KINDS[path.suffix]
    with tempfile.TemporaryDirectory() as folder, _quietly(), torch.no_grad():
        partial = Path(folder) / path.name
        write(alone, images, partial, json.dumps(dict(about)))
        answer = read(partial)
        apart = max(float((answer(images[:count]) - alone(images[:count])).abs().max()) for count in BATCHES)
        if not apart <= AGREES:
            raise RuntimeError(f"{path.name} would give other embeddings than the network, by up to {apart:.2g}")
        write_whole(path, partial.read_bytes())
    return apart


def _any_number() -> dict[str, Any]:
    return {"images": {0: torch.export.Dim("batch")}}


def _write_torch(network: nn.Module, images: Tensor, path: Path, about: str) -> None:
    program = torch.export.export(network, (images,), dynamic_shapes=_any_number())
    torch.export.save(program, path, extra_files={ABOUT: about})


def _read_torch(path: Path) -> Answer:
    return torch.export.load(path).module()


def _write_onnx(network: nn.Module, images: Tensor, path: Path, about: str) -> None:
    _needs("onnx", "onnxscript", "onnxruntime")
    program = torch.onnx.export(
        network,
        (images,),
        dynamo=True,
        verbose=False,
        input_names=["images"],
        output_names=["embeddings"],
        dynamic_shapes=_any_number(),
    )
    if program is None:
        raise RuntimeError("torch has exported nothing")
    program.model.metadata_props["rankshot"] = about
    program.save(path, external_data=False)


def _read_onnx(path: Path) -> Answer:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(["embeddings"], {"images": images.numpy()})[0])


KINDS: dict[str, tuple[Callable[[nn.Module, Tensor, Path, str], None], Callable[[Path], Answer]]] = {
    ".onnx": (_write_onnx, _read_onnx),
    ".pt2": (_write_torch, _read_torch),
}


def _needs(*packages: str) -> None:
    from importlib.util import find_spec

    if missing := [package for package in packages if find_spec(package) is None]:
        raise ImportError(f"ONNX needs {', '.join(missing)}: pip install 'rankshot[onnx]'")


@contextmanager
def _quietly() -> Iterator[None]:
    """Exporters talk about packages that nobody asked for."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
