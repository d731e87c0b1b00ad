"""What preprocessor_config.json of a model of transformers says about its pictures. transformers' own reader of it needs
torchvision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from rankshot.preprocess import Fit, Interpolation, Preprocess
from rankshot.schema import checked

INTERPOLATIONS: dict[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box"}  # Pillow's
CROPPED_BELOW = 384  # pixels, where a model with `crop_pct` is shown the middle of a picture; above, the whole, stretched
Size = int | dict[str, int | None] | list[int]


class Processor(TypedDict, total=False):
    """preprocessor_config.json, as far as it is understood."""

    size: Size
    crop_size: Size
    crop_pct: float
    do_resize: bool
    do_center_crop: bool
    do_rescale: bool
    rescale_factor: float
    rescale_offset: bool
    do_normalize: bool
    image_mean: list[float] | float
    image_std: list[float] | float
    include_top: bool
    resample: Literal[0, 1, 2, 3, 4]
    do_flip_channel_order: bool


@dataclass(frozen=True)
class Pictures:
    """How pictures are made ready, and what of it the network does by itself."""

    preprocess: Preprocess
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    blue_first: bool


def pictures_of(content: Mapping[str, Any], channels: int, usual: Any, where: str) -> Pictures:
    """What such a file tells; `usual` is the size that the model itself was made for."""
    # What is null is as if it were not there.
    told: Processor = checked({name: value for name, value in content.items() if value is not None}, Processor, where)
    height, width, fit = _size(told, usual, where)
    interpolation = INTERPOLATIONS[told.get("resample", 2)]
    try:
        mean, deviation = _scale(told, channels)
        preprocess = Preprocess(channels, height, width, fit=fit, interpolation=interpolation)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return Pictures(preprocess, mean, deviation, told.get("do_flip_channel_order", False))


def _size(told: Processor, usual: Any, where: str) -> tuple[int, int, Fit]:
    """Height and width, and how a picture gets there. Where the file wants a picture a little larger and the middle of
    that, it is cropped alone: the middle is all of its shorter side."""
    size = told.get("size") if told.get("do_resize", True) else None
    if told.get("do_center_crop", False):
        return *_sides(told.get("crop_size", size) or usual, where), "crop"
    if size is None:
        return *_sides(told.get("crop_size") or usual, where), "crop"
    sides = _sides(size, where)
    if "crop_pct" in told:
        return *sides, "crop" if min(sides) < CROPPED_BELOW else "stretch"
    if isinstance(size, dict) and "longest_edge" in size and "shortest_edge" not in size:
        return *sides, "pad"
    return *sides, "crop" if isinstance(size, dict) and "shortest_edge" in size else "stretch"


def _sides(size: Any, where: str) -> tuple[int, int]:
    """Height and width."""
    if isinstance(size, dict):
        one = size.get("shortest_edge") or size.get("longest_edge")
        size = [size.get("height") or one, size.get("width") or one]
    sides: list[Any] = [size, size] if isinstance(size, int) else list(size or ())
    if len(sides) != 2 or not all(isinstance(side, int) for side in sides):
        raise ValueError(f"{where}: size must tell height and width, or shortest_edge, got {size!r:.60}")
    return sides[0], sides[1]


def _scale(told: Processor, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of pixels from 0 to 1, whatever the file scales them to before; empty where there is nothing."""
    top = round(255 * told.get("rescale_factor", 1 / 255), 6) if told.get("do_rescale", True) else 255.0
    if top <= 0:
        raise ValueError(f"rescale_factor must be more than 0, got {told.get('rescale_factor')}")
    mean, deviation = [0.0] * channels, [1.0] * channels
    if told.get("do_normalize", "image_mean" in told):
        mean = _each(told.get("image_mean", mean), channels, "image_mean")
        deviation = _each(told.get("image_std", deviation), channels, "image_std")
    if told.get("rescale_offset", False):  # from -1
        mean = [number + 1 for number in mean]
    again = deviation if told.get("include_top", False) else [1.0] * channels  # EfficientNet is divided by it twice
    mean = [number / top for number in mean]
    deviation = [one * other / top for one, other in zip(deviation, again, strict=True)]
    if mean == [0.0] * channels and deviation == [1.0] * channels:
        return (), ()
    return tuple(mean), tuple(deviation)


def _each(value: list[float] | float, channels: int, name: str) -> list[float]:
    numbers = value if isinstance(value, list) else [value] * channels
    if len(numbers) != channels:
        raise ValueError(f"{name} must have a number for each of {channels} channels, got {value!r:.60}")
    return numbers
