"""Where other libraries insist on their own classes. Each is imported only by its own module here.

- `pml`: pytorch-metric-learning.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import pml

__all__ = ["pml"]


def __getattr__(name: str) -> ModuleType:
    """Imported when it is asked for: its library need not be installed."""
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
