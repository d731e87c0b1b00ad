"""The systems of the paper's tables, and today's rivals: one file each, one small interface."""

from .episodic import Episodic
from .method import SYSTEMS, Given, Method, Sampler, options_of, register, settings_for, system
from .own import load_systems
from .ruled import RuledNetwork, network

# In this order they are told:
# isort: off
from .ranked import MapDLM, MapSSVM
from .siamese import Siamese
from .nearest import Nearest
from .matching import FullContextMatching, Matching
from .prototypical import Prototypical
from .maml import MAML
from .meta_lstm import MetaLSTM
from .memory import WithMemory
from .nca import NCA
from .lmnn import LMNN
from .triplet import Triplet
from .smooth_ap import SmoothAP
from .fast_ap import FastAP
from .supcon import SupCon
from .baseline_plus import BaselinePlus
# isort: on

__all__ = [
    "LMNN",
    "MAML",
    "NCA",
    "SYSTEMS",
    "BaselinePlus",
    "Episodic",
    "FastAP",
    "FullContextMatching",
    "Given",
    "MapDLM",
    "MapSSVM",
    "Matching",
    "MetaLSTM",
    "Method",
    "Nearest",
    "Prototypical",
    "RuledNetwork",
    "Sampler",
    "Siamese",
    "SmoothAP",
    "SupCon",
    "Triplet",
    "WithMemory",
    "load_systems",
    "network",
    "options_of",
    "register",
    "settings_for",
    "system",
]
