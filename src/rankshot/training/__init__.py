"""From images to a trained network: the config, the loop, the run folder.

`train(TrainConfig.of(...), folder)` trains; `config_for` chooses settings as `rankshot train` does.
"""

from .callbacks import Callback
from .config import TrainConfig
from .fitting import config_for
from .loop import train

__all__ = ["Callback", "TrainConfig", "config_for", "train"]
