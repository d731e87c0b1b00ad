"""Few-shot systems to train by: those of the paper's tables, and today's rivals; one file each, one small interface.

Every loss of `rankshot.losses` is a method, too. `METHODS` has them all by name.
"""

import rankshot.losses  # noqa: F401  # registers those that are methods by themselves

from .arc import ARC
from .baseline_plus import BaselinePlus
from .episodic import Episodic
from .maml import MAML
from .matching import FullContextMatching, Matching
from .memory import WithMemory
from .meta_lstm import MetaLSTM
from .method import METHODS, Context, LossMethod, Method, Sampler, make_method, method_class, register, settings_for
from .nearest import Nearest
from .prototypical import Prototypical
from .with_rule import NetworkWithRule

__all__ = [
    "ARC",
    "MAML",
    "METHODS",
    "BaselinePlus",
    "Context",
    "Episodic",
    "FullContextMatching",
    "LossMethod",
    "Matching",
    "MetaLSTM",
    "Method",
    "Nearest",
    "NetworkWithRule",
    "Prototypical",
    "Sampler",
    "WithMemory",
    "make_method",
    "method_class",
    "register",
    "settings_for",
]
