"""From images to a trained network: the config, the loop, the run folder."""

from .config import TrainConfig
from .loop import train

__all__ = ["TrainConfig", "train"]
