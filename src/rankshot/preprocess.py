"""How a picture becomes what a network sees: the one description that data, networks, galleries and exports share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from .schema import Between, check_fields

MOST_PIXELS_A_SIDE = 2048
Side = Annotated[int, Between(1, MOST_PIXELS_A_SIDE)]
Fit = Literal["stretch", "crop", "pad"]
Interpolation = Literal["bicubic", "bilinear", "lanczos", "box", "nearest"]
Number = Annotated[float, Between(-1e6, 1e6)]
Spread = Annotated[float, Between(1e-6, 1e6)]


@dataclass(frozen=True)
class Preprocess:
    """How a picture becomes what a network sees: size, channels, and how values are normalised.

    Args:
        channels: 1 for grey, 3 for colour.
        height: in pixels.
        width: in pixels.
        fit: how a picture of another form gets to that size: "stretch" both sides, "crop" the middle of it, or "pad" what
            is missing with its background.
        interpolation: how pixels between pixels are found: "bicubic", "bilinear", "lanczos", "box" or "nearest".
        mean: of each channel, where pixels are from 0 to 1. The network itself subtracts it. Empty: 0.
        deviation: of each channel, by which the network divides then. Empty: 1.
        invert: whether dark ink becomes bright.

    Raises:
        ValueError: if a value is out of range, or `mean` or `deviation` has not one number a channel.

    Examples:
        >>> from rankshot import Preprocess
        >>> preprocess = Preprocess(3, 84, 84, fit="crop")
        >>> preprocess.shape
        (3, 84, 84)
        >>> print(preprocess)
        84x84 in colour, cropped
        >>> Preprocess(3, 84, 84, mean=(0.5,))
        Traceback (most recent call last):
        ValueError: preprocess: mean must have a number for each of 3 channels, or none
    """

    channels: Annotated[int, Between(1, 16)]
    height: Side
    width: Side
    fit: Fit = "stretch"
    interpolation: Interpolation = "bicubic"
    mean: tuple[Number, ...] = ()
    deviation: tuple[Spread, ...] = ()
    invert: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "preprocess")
        for name in ("mean", "deviation"):
            if len(getattr(self, name)) not in (0, self.channels):
                raise ValueError(f"preprocess: {name} must have a number for each of {self.channels} channels, or none")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        return self.channels, self.height, self.width

    def to_json(self) -> dict[str, Any]:
        """The settings as a dictionary, for a JSON file."""
        return asdict(self)

    def __str__(self) -> str:
        colours = {1: "grey", 3: "in colour"}.get(self.channels, f"of {self.channels} channels")
        fits = {"crop": "cropped", "pad": "padded"}
        details = [fits[self.fit]] if self.fit in fits else []
        details += [self.interpolation] if self.interpolation != "bicubic" else []
        details += ["dark ink made bright"] if self.invert else []
        for name in ("mean", "deviation"):
            numbers = sorted(set(getattr(self, name)))
            details += [f"{name} {' '.join(f'{number:.3g}' for number in numbers)}"] if numbers else []
        return ", ".join([f"{self.width}x{self.height} {colours}", *details])


def check_preprocess(given: Preprocess) -> Preprocess:
    if not isinstance(given, Preprocess):
        raise TypeError(f"preprocess must be a Preprocess, got {given!r:.60}: Preprocess(channels, height, width) is one")
    return given
