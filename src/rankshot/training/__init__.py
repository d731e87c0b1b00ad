"""From images to a trained network: the config, the loop, the run folder."""

from .callbacks import Callback
from .config import TrainConfig
from .fitting import config_for
from .loop import train

__all__ = ["Callback", "TrainConfig", "config_for", "train"]
