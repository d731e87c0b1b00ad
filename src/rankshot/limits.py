"""Numbers that people set: each within a range that makes sense. What lies far outside is a slip, and might never end."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

LARGEST, SMALLEST = 1e9, 1e-9  # of temperatures, margins, scales, rates: what is computed from them stays finite
DIGITS = 30  # of a number that is wrong, in a message


def whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both of them included.

    >>> whole("samples", 1, 2, 1000)
    Traceback (most recent call last):
    ValueError: samples must be a whole number from 2 to 1,000, got 1
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise ValueError(f"{name} must be a whole number from {low:,} to {high:,}, got {shown(value)}")
    return int(value)


def real(name: str, value: Any, low: float, high: float) -> float:
    """A number from `low` to `high`, both of them included.

    >>> real("smoothing", float("nan"), 0, 100)
    Traceback (most recent call last):
    ValueError: smoothing must be a number from 0 to 100, got nan
    """
    is_number: bool = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {shown(value)}")
    return float(value)


def positive(name: str, value: Any) -> float:
    """A number above 0, neither so small nor so large that nothing can be computed with it."""
    return real(name, value, SMALLEST, LARGEST)


def shown(value: object) -> str:
    """In a message: Python itself does not write out a number of more than some thousand digits."""
    if isinstance(value, int) and abs(value) >= 10**DIGITS:
        return f"a number of {math.floor(math.log10(abs(value))) + 1:,} digits"
    return repr(value)
