"""Who hears what happens in training: a subclass of `Callback`, a progress bar, a logger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rankshot.fewshot import Result, summary


class Callback:
    """Told what happens in training, in the order of the methods below. A subclass overrides what it wants to hear.

    An exception that it raises ends training. `train(..., progress=Callback())` shows nothing.

    Examples:
        >>> import numpy as np
        >>> import rankshot
        >>> from rankshot import data, training
        >>> class Heard(training.Callback):
        ...     def updated(self, update, loss, batch_map, per_second):
        ...         print("update", update)
        ...
        ...     def ended(self, update):
        ...         print("ended after", update)
        >>> pixels = np.random.default_rng(0).integers(0, 256, (12, 1, 28, 28), dtype=np.uint8)
        >>> images = data.ImageSet(pixels, np.repeat([0, 1, 2], 4), ("a", "b", "c"))
        >>> config = rankshot.TrainConfig.of(
        ...     updates=2, log_every=1, filters=4, batch_classes=2, batch_size=6, validate_every=0, device="cpu"
        ... )
        >>> status = rankshot.train(config, "run", train_set=images, callbacks=[Heard()], progress=training.Callback())
        update 1
        update 2
        ended after 2
    """

    def started(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Training begins or goes on in a folder, with these settings."""

    def message(self, text: str) -> None:
        """Something that a person should know, such as how long it will take."""

    def updated(self, update: int, loss: float, batch_map: float, per_second: float) -> None:
        """Every `log_every` updates. `batch_map`, the mAP of the batch, is nan if no two of its images are of one class."""

    def validated(self, update: int, results: Sequence[Result], is_best: bool) -> None:
        """After every validation."""

    def ended(self, update: int) -> None:
        """Training has ended after this update: by itself, stopped, or by an error. Close here what was opened."""


class CallbackList(Callback):
    """Passes on to several, in their order."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks = callbacks
        self._started: list[Callback] = []

    def started(self, folder: Path, settings: Mapping[str, Any]) -> None:
        for callback in self.callbacks:
            callback.started(folder, settings)
            self._started.append(callback)

    def message(self, text: str) -> None:
        for callback in self.callbacks:
            callback.message(text)

    def updated(self, update: int, loss: float, batch_map: float, per_second: float) -> None:
        for callback in self.callbacks:
            callback.updated(update, loss, batch_map, per_second)

    def validated(self, update: int, results: Sequence[Result], is_best: bool) -> None:
        for callback in self.callbacks:
            callback.validated(update, results, is_best)

    def ended(self, update: int) -> None:
        """Every one that was started ends, also when another one fails at it."""
        with ExitStack() as stack:  # the last one first
            for callback in reversed(self._started):
                stack.callback(callback.ended, update)


class Logger(Callback):
    """Numbers by name, to wherever `_log` takes them."""

    def updated(self, update: int, loss: float, batch_map: float, per_second: float) -> None:
        self._log({"train/loss": loss, "train/batch_map": batch_map, "train/updates_per_second": per_second}, update)

    def validated(self, update: int, results: Sequence[Result], is_best: bool) -> None:
        self._log({f"validation/{task}": score["mean"] for task, score in summary(results).items()}, update)

    def _log(self, numbers: Mapping[str, float], update: int) -> None:
        raise NotImplementedError


class TensorBoard(Logger):
    """Into the folder `tensorboard` of the run: tensorboard --logdir RUN."""

    def started(self, folder: Path, settings: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def _log(self, numbers: Mapping[str, float], update: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, update)

    def ended(self, update: int) -> None:
        self._writer.close()


class WandB(Logger):
    """To Weights & Biases, as its own environment variables say (WANDB_PROJECT, WANDB_MODE=offline, …)."""

    def started(self, folder: Path, settings: Mapping[str, Any]) -> None:
        import wandb

        self._run = wandb.init(dir=str(folder), name=folder.name, config=dict(settings))

    def _log(self, numbers: Mapping[str, float], update: int) -> None:
        self._run.log(dict(numbers), step=update)

    def ended(self, update: int) -> None:
        self._run.finish()


LOGGERS: dict[str, Callable[[], Logger]] = {"tensorboard": TensorBoard, "wandb": WandB}


def loggers_for(names: Sequence[str]) -> list[Logger]:
    """By name; a package that is missing is told before anything is trained."""
    for name in names:
        if find_spec(name) is None:
            raise ImportError(f"the logger {name!r} needs a package that is not here: pip install 'rankshot[{name}]'")
    return [LOGGERS[name]() for name in names]
