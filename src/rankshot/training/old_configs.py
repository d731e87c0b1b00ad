"""Configs as earlier versions wrote them, told by today's flat names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankshot.methods import METHODS
from rankshot.schema import checked

RENAMED = {"samples": "smoothing_samples", "wide": "coarse_weight", "wide_alpha": "coarse_alpha", "norm": "batch_norm"}
# Settings that every config of format 1 had, whatever its method; another method than theirs had no use for them.
OF_SOME = (
    "metric",
    "alpha",
    "epsilon",
    "sign",
    "smoothing",
    "smoothing_samples",
    "coarse_weight",
    "coarse_alpha",
    "temperature",
)


# What the ranking objective began with up to format 2: the paper's.
FORMER = {"epsilon": 1.0, "smoothing": 0.0, "coarse_weight": 0.0}


def with_former_objective(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a method up to format 2: what they do not tell was another default then. alpha may be null."""
    if method not in ("map-dlm", "map-ssvm"):
        return dict(settings)
    alpha = settings.get("alpha")
    if alpha is None:
        alpha = 10.0 if checked(settings.get("sign", 1), int, "sign") > 0 else 1.0
    return {**FORMER, **settings, "alpha": alpha}


def migrated(content: Mapping[str, Any]) -> dict[str, Any]:
    """Format 1, which was flat, and had a method's own settings as texts "name=value"."""
    settings = {RENAMED.get(name, name): value for name, value in content.items()}
    method = checked(settings.get("method", "map-dlm"), str, "method")
    types = METHODS[method].types
    settings = {name: value for name, value in settings.items() if name not in OF_SOME or name in types}
    if method not in ("map-dlm", "map-ssvm", "smooth-ap"):
        settings = {name: value for name, value in settings.items() if name not in OF_SOME}
    for option in checked(settings.pop("options", ()), tuple[str, ...], "options"):
        name, equals, text = option.partition("=")
        if name not in types or not equals:
            raise ValueError(f"{method} has no option {option!r}: there is {', '.join(types) or 'none'}")
        settings[name] = _value(name, text, types[name])
    if method == "meta-lstm":
        settings.setdefault("clip", 0.25)
    return with_former_objective(method, settings)


def _value(name: str, text: str, kind: Any) -> Any:
    readers: dict[Any, Any] = {int: int, float: float, bool: lambda text: {"true": True, "false": False}[text.lower()]}
    try:
        return readers.get(kind, str)(text)
    except (KeyError, ValueError):
        raise ValueError(f"option {name} cannot be read: {text!r}") from None
