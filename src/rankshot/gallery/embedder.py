"""A network, and how images are made ready for it: images of any kind in, unit vectors out."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankshot.data.decoding_steps import decoding_steps
from rankshot.fewshot.answerer import Answerer, embed
from rankshot.hardware import device_for
from rankshot.models.export import export
from rankshot.models.folder_files import CARD, CLASS_MEANS, CLASSES, EVALUATION, ONE_SHOT, WEIGHTS
from rankshot.models.largest_layer import images_at_once, largest_layer
from rankshot.models.network import NETWORKS, embedder_in, wrap
from rankshot.models.pretrained import described_in, from_pretrained, preprocess_in
from rankshot.models.saving import copy_pretrained, description_of, save_pretrained
from rankshot.models.shipped import folder_of
from rankshot.models.strongest import strongest
from rankshot.preprocess import Preprocess, check_preprocess
from rankshot.tensors import read_tensors
from rankshot.vectors import unit_vectors

from .one_shot import OneShot, known_beside
from .pictures import Failure, Unreadable, decoded

MOST_BYTES_A_LAYER = 2**28  # of one image
GPU_TURN = threading.Lock()
Vectors = NDArray[np.float32]


class Embedded(NamedTuple):
    """Some of the images, in their order.

    places    which of them
    vectors   (n, D) float32, of length 1
    failures  those between that could not be read
    """

    places: list[int]
    vectors: Vectors
    failures: list[Failure]


class Coming(NamedTuple):
    """(n, D) float32 on the CPU, which are there when a GPU says so."""

    vectors: torch.Tensor
    arrived: torch.cuda.Event | None


def check_memory(network: nn.Module, preprocess: Preprocess, name: str) -> None:
    """A file may ask for images so large that one of them takes all memory within the network."""
    widest = max([3, *(module.out_channels for module in network.modules() if isinstance(module, nn.Conv2d))])
    size = 4 * widest * preprocess.height * preprocess.width
    if size > MOST_BYTES_A_LAYER:  # if its widest layer sees every pixel, which of most networks it does not
        size = 4 * largest_layer(network, preprocess.shape) or size
    if size > MOST_BYTES_A_LAYER:
        takes = f"{preprocess.height}x{preprocess.width} pixels take {size / 2**20:,.0f} MiB in one layer"
        raise ValueError(f"{name} wants images that are too large: {takes}, {MOST_BYTES_A_LAYER / 2**20:.0f} are the most")


@contextmanager
def as_precisely_as_a_cpu(device: torch.device) -> Iterator[None]:
    """Without the shorter numbers that torch multiplies by in convolutions on a GPU: vectors of one gallery may come from
    either. A setting of the whole process, and so for one thread at a time."""
    if device.type != "cuda":
        yield
        return
    now = torch.backends.cudnn
    with (
        GPU_TURN,
        now.flags(enabled=now.enabled, benchmark=now.benchmark, deterministic=now.deterministic, allow_tf32=False),
    ):
        yield


class Embedder:
    """An embedding network for images of any kind: paths, bytes, Pillow images, arrays. It gives unit vectors.

    Args:
        model: a run folder, the name of weights, "strongest" for the strongest network for photographs that is installed,
            "hf:NAME" for a vision model of Hugging Face, or any `nn.Module` that takes float images (B, C, H, W) from 0
            to 1 and gives (B, D).
        preprocess: how pictures are made ready for it. None: as the folder or the network tells.
        name: of the network, in galleries and messages. None: the name of the folder or class.
        device: where it computes: "cpu", "cuda", or "auto", which is a GPU if there is one. A module stays where it is by
            "auto". Vectors are on the CPU in any case.

    Raises:
        FileNotFoundError: if there is no such folder or name.
        ValueError: if the network has no embeddings, does not tell what pictures it wants, or cannot take them.

    Examples:
        A network whose embeddings are the pixels, and a picture of two pixels:

        >>> import numpy as np
        >>> import torch
        >>> import rankshot
        >>> embedder = rankshot.Embedder(torch.nn.Flatten(), rankshot.Preprocess(1, 1, 2))
        >>> embedder([np.array([[[30, 40]]], np.uint8)])  # (30, 40) / 50
        array([[0.6, 0.8]], dtype=float32)
        >>> rankshot.Embedder("conv4-omniglot", device="cpu").dimensions
        64
    """

    class_means: torch.Tensor | None = None  # (classes, D) of those that it was trained on, where they come along

    def __init__(
        self,
        model: str | Path | nn.Module,
        preprocess: Preprocess | None = None,
        *,
        name: str | None = None,
        device: str = "auto",
    ) -> None:
        place = device_for(device)
        known: Preprocess | None = None
        description: Mapping[str, Any] = {}
        self.folder: Path | None = None
        self.one_shot: OneShot | None = None  # thresholds that come with the weights
        if isinstance(model, nn.Module):
            network, self.name = model, name or type(model).__name__
            known = getattr(model, "preprocess", None)
            if known is None and isinstance(preprocess, Preprocess) and (preprocess.mean or preprocess.deviation):
                network = wrap(model, preprocess=preprocess)
        else:
            model = strongest() if model == "strongest" else model
            self.folder = folder = folder_of(model)
            network, known, description = from_pretrained(folder), preprocess_in(folder), described_in(folder)
            self.name = name or str(model)
        if isinstance(network, Answerer):
            raise ValueError(f"{self.name} answers in its own way and has no embeddings: use an embedding network")
        preprocess = known if preprocess is None else check_preprocess(preprocess)
        if preprocess is None:
            raise ValueError(
                f"{self.name} does not tell what pictures it wants: give Embedder(…, Preprocess(channels, height, width))"
            )
        if self.folder is not None or device != "auto":
            network = network.to(place)
        if self.folder is not None and place.type == "cuda":
            # Channels last, cudnn compiles depthwise convolutions anew for each number of images, which takes seconds.
            network = network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.network, self.preprocess = network.eval(), preprocess
        check_memory(network, self.preprocess, self.name)
        if self.folder is not None and preprocess == known:  # of pictures that are made ready otherwise, they say nothing
            self.one_shot, self.class_means = known_beside(self.folder)
        try:
            self.dimensions = self._fetched(self._embeddings([np.zeros(preprocess.shape, np.uint8)])).shape[1]
        except RuntimeError as error:
            raise ValueError(f"{self.name} cannot embed images of shape {preprocess.shape}: {error}") from None
        self.fingerprint = self._fingerprint(description)

    def __call__(self, images: Iterable[Any]) -> Vectors:
        """(n, D) float32, of length 1. Images that cannot be read are an error (`Unreadable`) that names them all."""
        parts = list(self.each(images))
        if failures := [failure for part in parts for failure in part.failures]:
            raise Unreadable(failures, len(failures) + sum(len(part.places) for part in parts))
        return np.concatenate([part.vectors for part in parts] or [np.zeros((0, self.dimensions), np.float32)])

    def each(self, images: Iterable[Any]) -> Iterator[Embedded]:
        """Embed images chunk by chunk, for more of them than fit in memory. Images that cannot be read are reported.

        Args:
            images: any number of them.

        Yields:
            `places` (which images), `vectors` (n, D) float32 of length 1, and `failures`.
        """
        ahead = int(self.device.type == "cuda")  # which computes a chunk while the pixels of the next one are put together
        begun: deque[tuple[list[int], Coming | None, list[Failure]]] = deque()
        for places, pixels, failures in decoded(images, self.preprocess, self._at_once):
            begun.append((places, self._embeddings(pixels) if pixels else None, failures))
            if len(begun) > ahead:
                yield self._ended(*begun.popleft())
        yield from (self._ended(*chunk) for chunk in begun)

    def _ended(self, places: list[int], coming: Coming | None, failures: list[Failure]) -> Embedded:
        if coming is None:
            return Embedded(places, np.zeros((0, self.dimensions), np.float32), failures)
        return Embedded(places, self._fetched(coming), failures)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Save network, preprocessing and what is known of it into a new folder, which `Embedder` opens.

        Raises:
            FileExistsError: if there is something in the folder.
        """
        if self.folder is not None and self._is_still_in(self.folder):
            measured = {ONE_SHOT: self.one_shot, CLASS_MEANS: self.class_means}
            also = (CLASSES, EVALUATION, CARD, *(name for name, value in measured.items() if value is not None))
            return copy_pretrained(self.folder, folder, also, self.preprocess)
        return save_pretrained(self.network, folder, self.preprocess)

    def export(self, path: str | Path) -> float:
        """Export the network to one file for programs without rankshot: NAME.onnx, or NAME.pt2 of `torch.export`.

        It takes float images (B, C, H, W) from 0 to 1, made ready as `preprocess` in it tells, and gives unit vectors:
        examples/onnx_without_rankshot.py reads all of it.

        Args:
            path: of the file.

        Returns:
            The largest difference between its vectors and the network's own, on random images.
        """
        about = {**self.about, "dimensions": self.dimensions, "preprocess": decoding_steps(self.preprocess)}
        return export(self.network, self.preprocess.shape, path, about)

    def _is_still_in(self, folder: Path) -> bool:
        """Whether the folder holds these weights: a run may have gone on since or gone away, or the network changed."""
        try:
            stored = read_tensors(folder / WEIGHTS)
        except (OSError, ValueError):
            return False
        here = self.network.state_dict()
        return stored.keys() == here.keys() and all(
            here[name].dtype in (tensor.dtype, torch.float32) and torch.equal(here[name].cpu(), tensor.to(here[name].dtype))
            for name, tensor in stored.items()
        )

    @cached_property
    def _at_once(self) -> int:
        shape = self.preprocess.shape
        return images_at_once(largest_layer(self.network, shape), shape, self.device)

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        return self._like().device

    @property
    def about(self) -> dict[str, Any]:
        """Its name, and the fingerprint by which its vectors are known again."""
        return {"name": self.name, "fingerprint": self.fingerprint}

    def _embeddings(self, pixels: Sequence[NDArray[np.uint8]]) -> Coming:
        """A GPU may not be ready with them yet."""
        like = self._like()
        on_gpu = like.device.type == "cuda"
        images = torch.empty(len(pixels), *self.preprocess.shape, dtype=torch.uint8, device="cpu", pin_memory=on_gpu)
        np.stack(pixels, out=images.numpy())
        with as_precisely_as_a_cpu(like.device):
            images = images.to(like.device, non_blocking=True)  # as bytes: a quarter of the way
            embeddings = unit_vectors(embed(self.network, images.to(like.dtype) / 255)).float()
        if embeddings.dim() != 2:
            raise ValueError(f"{self.name} must give (B, D) embeddings, got shape {tuple(embeddings.shape)}")
        if not on_gpu:
            return Coming(embeddings.cpu(), None)
        # The way back is asked for now: asked for later, it would come after what the GPU is given meanwhile.
        vectors = torch.empty(embeddings.shape, dtype=torch.float32, device="cpu", pin_memory=True).copy_(
            embeddings, non_blocking=True
        )
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record(torch.cuda.current_stream(like.device))
        return Coming(vectors, arrived)

    def _fetched(self, coming: Coming) -> Vectors:
        if coming.arrived is None:
            vectors: Vectors = coming.vectors.numpy()
        else:
            coming.arrived.synchronize()
            vectors = coming.vectors.numpy().copy()  # memory that a GPU can write to is scarce
        if not np.isfinite(vectors).all():
            raise ValueError(f"{self.name} gives embeddings that are not finite")
        return vectors

    def _like(self) -> torch.Tensor:
        """Of the precision of its weights, where they are."""
        return next((each for each in self.network.parameters() if each.is_floating_point()), torch.zeros(0))

    def _fingerprint(self, description: Mapping[str, Any]) -> str:
        """Of everything that its vectors depend on: what it is, its weights, and how images are made ready."""
        try:
            what: Any = description or description_of(self.network)
            is_own = embedder_in(what)["name"] not in NETWORKS
        except ValueError:
            is_own = True
        if is_own:  # a name may stand for anything
            what = [type(self.network).__qualname__, repr(self.network), self.dimensions]
        preprocess = self.preprocess
        usual = Preprocess(*preprocess.shape, invert=preprocess.invert)
        # Galleries know the usual by its shape and ink alone.
        how = [*([] if preprocess == usual else [preprocess.to_json()]), preprocess.shape, preprocess.invert]
        digest = hashlib.sha256(json.dumps([what, *how], sort_keys=True).encode())
        for key, tensor in self.network.state_dict().items():
            digest.update(key.encode())
            digest.update(
                tensor.detach().cpu().flatten().view(torch.uint8).numpy().tobytes()
                if tensor.dim()
                else repr(tensor.item()).encode()
            )
        return digest.hexdigest()[:32]
