"""The training loop: one update after another, with validation and checkpoints. What it works with is made in `setup`.

Update number i depends on the config and on the updates before it, and on nothing else: batches and random numbers come
from (seed, i). So a run that was stopped, in whatever way, goes on exactly where its last checkpoint stands.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rankshot import fewshot, ranking
from rankshot.data import ImageSet
from rankshot.fewshot import class_means
from rankshot.gathering import (
    ToldByFirst,
    any_of,
    copy_from_first_,
    failing_together,
    is_first,
    is_shared,
    rank,
    told_by_first,
    whole_of,
)
from rankshot.methods import Method
from rankshot.models.folder_files import WEIGHTS
from rankshot.models.gathered_norm import gathering_batch_norm
from rankshot.models.network import preprocess_of, trunk_of
from rankshot.models.shipped import folder_of
from rankshot.processes import is_orphan
from rankshot.randomness import seed_for
from rankshot.tensors import read_tensors, write_tensors
from rankshot.vectors import NotFinite, unit_vectors

from . import run_folder
from .agreement import check_alike
from .assembly import GIVEN, Images, Objects, described
from .callbacks import Callback, CallbackList, loggers_for
from .clock import Clock
from .config import TrainConfig
from .estimate import time_estimate
from .near_classes import settle
from .optimiser import flags_put_back, set_learning_rate
from .progress import progress_for
from .run_folder import RunFiles, RunStatus
from .setup import Setup, set_up, try_one_batch
from .step import GraphedStep, Step, repeatable, seconds_an_update
from .stopping import Interrupted, stop_signals
from .validation import loaded_with


def train(
    config: TrainConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    network: nn.Module | None = None,
    method: Method | Any | None = None,
    loss: Any | None = None,
    train_set: ImageSet | None = None,
    val_set: ImageSet | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Callback | None = None,
) -> RunStatus:
    """Train a network into a new folder, or with `resume` go on with the run that is there.

    The folder has the best network, so `from_pretrained(folder)` opens it, its config, and a checkpoint to go on from.
    Asked to stop (Ctrl-C, SIGTERM), it leaves a checkpoint and raises `KeyboardInterrupt`.

    Where `torch.distributed` is set up, all processes call this, and each learns from a part of every batch; the updates
    are those of a single process. The first process writes the folder and calls `callbacks` and `progress`.

    Args:
        config: every setting; `TrainConfig.of` makes one by the names of the command line.
        folder: of the run.
        resume: go on where the last checkpoint stands.
        network: an embedding network in place of the config's, wrapped (`rankshot.wrap`). It learns in place, from the
            weights that it has to the last ones; the best are in the folder.
        method: a `Method`, or what makes one of a `Context`, in place of the config's.
        loss: loss(embeddings, labels) -> scalar, in place of a method.
        train_set: images to learn from, in place of the config's data.
        val_set: images of other classes to validate on.
        callbacks: told what happens.
        progress: shown to a person. None: a bar, or lines; `Callback()` is silent.

    Returns:
        How far it came: `update`, `best` (of the deciding validation task; -1 without validation), and more.

    Raises:
        TypeError: if `config` is no `TrainConfig`, or a callback no `Callback`.
        ValueError: if settings, images and network do not fit together.
        FileExistsError: if the folder holds a run, and `resume` is not set.
        KeyboardInterrupt: if it was stopped.

    Examples:
        Two updates of a small network, on noise:

        >>> import numpy as np
        >>> import rankshot
        >>> from rankshot import data, losses, training
        >>> pixels = np.random.default_rng(0).integers(0, 256, (12, 1, 28, 28), dtype=np.uint8)
        >>> images = data.ImageSet(pixels, np.repeat([0, 1, 2], 4), ("a", "b", "c"))
        >>> config = rankshot.TrainConfig.of(
        ...     updates=2, filters=4, batch_classes=2, batch_size=6, validate_every=0, device="cpu"
        ... )
        >>> status = rankshot.train(
        ...     config, "run", loss=losses.RankingLoss(), train_set=images, progress=training.Callback()
        ... )
        >>> status.update
        2
        >>> rankshot.from_pretrained("run").embedding_dim  # 4 filters at 28x28 pixels
        4
    """
    if not isinstance(config, TrainConfig):
        raise TypeError(f"config must be a TrainConfig, got {config!r:.60}: TrainConfig.of(updates=100) is one")
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks must be a list of rankshot.training.Callback, got {callbacks!r:.60}")
    if not all(isinstance(callback, Callback) for callback in (*callbacks, *([] if progress is None else [progress]))):
        raise TypeError("callbacks and progress must be objects of rankshot.training.Callback, or of a subclass")
    folder, objects = Path(folder), Objects(network, method, loss, train_set, val_set)
    config = objects.named_in(config)
    with flags_put_back(network), ExitStack() as stack:
        with failing_together():
            loggers = loggers_for(config.run.loggers)
            if not resume:
                run_folder.check_is_no_run(folder)
            setup = set_up(config, folder, objects, resume=resume)
        stack.callback(setup.close)
        check_alike(config, setup.method, setup.images.train, setup.images.held_out)
        if is_shared() and not config.batch.micro_batch:
            stack.enter_context(gathering_batch_norm(setup.model))
        setup = replace(setup, resumes=told_by_first(setup.resumes))
        if not setup.resumes:
            try_one_batch(setup)
        stop = stack.enter_context(stop_signals())
        stack.enter_context(repeatable())
        with failing_together():
            status, files, shown = None, RunFiles(folder, None), CallbackList([])
            if is_first():
                status, files = stack.enter_context(begun(setup, folder, resume=resume))
                name = f"{config.data.name} {config.method.name}"
                bar = stack.enter_context(progress_for(name, config.run.updates, status.update, progress))
                shown = CallbackList([bar, *loggers, *callbacks])
        status = RunStatus(**told_by_first(None if status is None else asdict(status)))
        copy_from_first_([*setup.tensors.values()])
        settle(setup.sampler, setup.tensors)
        begun_at = status.update
        status = Loop(setup, files, status, shown, stop).run()
        [stopped] = any_of(stop.is_set() or is_orphan())
        if is_first() and not stopped and status.update > begun_at:
            keep_class_means(setup, folder)
    if stopped:
        raise Interrupted(f"stopped after update {status.update}, and its checkpoint is in {folder}")
    return status


def keep_class_means(setup: Setup, folder: Path) -> None:
    """What the network that is kept makes of the classes that it learned from, beside its weights; where that helps to
    tell what is none of the validation classes."""
    held_out = setup.images.held_out
    if held_out is None or isinstance(setup.model, fewshot.Answerer):
        return
    places = class_means.some_of_each(held_out.labels)
    with loaded_with(setup.model, read_tensors(folder / WEIGHTS)):
        means = class_means.measured(setup.model, setup.images.train)
        vectors = fewshot.embed_all(setup.model, held_out.only(places))
    helps = class_means.help_reject(means, vectors.cpu(), torch.from_numpy(held_out.labels[places]))
    class_means.write(folder, means if helps else None)


@contextmanager
def begun(setup: Setup, folder: Path, *, resume: bool) -> Iterator[tuple[RunStatus, RunFiles]]:
    """The folder of the run, ours alone; where the run stands, with its tensors filled; and what it writes to."""
    with run_folder.only_process_in(folder):
        status = begin_or_resume(setup, folder, resume=resume)
        with run_folder.metrics_after(folder, status.update if status.has_begun else -1) as metrics:
            yield status, RunFiles(folder, metrics)


def begin_or_resume(setup: Setup, folder: Path, *, resume: bool) -> RunStatus:
    """Write the folder of a new run, or fill the tensors with the checkpoint that is there."""
    config, model = setup.config, setup.model
    classes = classes_learned(config, folder, setup.images, resume=resume)
    run_folder.begin(folder, config, described(model), classes, preprocess_of(model), resume=resume)
    start = folder / run_folder.START
    has_weights = config.network.init is not None or config.network.architecture.is_object
    if has_weights and not setup.resumes and not start.is_file():
        write_tensors(start, model.state_dict(), {})  # where they came from may not be there when the run is resumed
    return run_folder.load_state(folder, setup.tensors)


class Loop:
    """The updates of a run, from where its status stands to its end."""

    def __init__(
        self,
        setup: Setup,
        files: RunFiles,
        status: RunStatus,
        callbacks: CallbackList,
        stop: threading.Event,
    ) -> None:
        self.setup, self.config, self.files = setup, setup.config, files
        self.status, self.callbacks, self.stop = status, callbacks, stop
        self.clock = Clock(status)
        self.logged = status  # where it stood at the last line of metrics.jsonl

    def run(self) -> RunStatus:
        try:
            self.callbacks.started(self.files.folder, self.config.flat())
            self._begin()
            if not self._is_over():
                if is_first():
                    run_folder.forget_measured(self.files.folder)
                step = self._step()
                self.clock.start()
                self.logged = self.status
                for update in range(self.status.update, self.config.run.updates):
                    if self._update(step, update):
                        break
        finally:
            self.callbacks.ended(self.status.update)
        return self.status

    def _begin(self) -> None:
        """Before the first update of this process."""
        threads = torch.get_num_threads()
        if self.status.update == 0:
            self._save_state()  # there is always something to go on from
        elif self.status.threads != threads and self.setup.labels.device.type == "cpu":
            before = self.status.threads
            self.callbacks.message(f"began with {before} threads, goes on with {threads}: last bits may differ")
        self.status = replace(self.status, threads=threads)
        if self.config.network.init is not None and self.setup.validator.tasks and not self.status.has_begun:
            self.callbacks.message(f"measuring {self.config.network.init} on the validation classes")
            self.setup.centre_head()
            self._validate()  # the weights that it begins with may stay the best
            self._save_state()

    def _step(self) -> Step | GraphedStep:
        """What makes an update; how long one takes is measured, and told."""
        setup, config = self.setup, self.config
        first = setup.batch(self.status.update, ahead=False)
        fits_a_head = setup.head_to_fit is not None
        model, inputs = setup.learning_part(self.callbacks.message)
        if fits_a_head and setup.validator.tasks:
            self.callbacks.message("measuring the head as it was fitted, before it learns")
            self._validate()  # it may stay the best
            self._save_state()
        eager = Step(
            model,
            setup.method,
            setup.optimiser,
            inputs,
            setup.labels,
            setup.average,
            config.optimiser.clip,
            config.batch.micro_batch,
        )
        on_gpu = setup.labels.device.type == "cuda"
        # Recorded with the first batch of all, wherever it goes on from: a run that is resumed has the same graph.
        # Micro-batches draw their random numbers twice, which a graph cannot; nor does it wait for other processes.
        graphed = on_gpu and config.run.cuda_graph and not config.batch.micro_batch and not is_shared()
        step = GraphedStep(eager, setup.tensors, setup.batch(0, ahead=False)) if graphed else eager
        if config.batch.micro_batch and any(_has_statistics(each) for each in trunk_of(setup.model).modules()):
            images = config.batch.micro_batch
            self.callbacks.message(f"batch norm: every micro-batch of {images} images by its own statistics")
        with suppress(NotFinite):  # it comes again in its turn, and is reported then
            seconds = seconds_an_update(step, setup.tensors, first)
            self.callbacks.message(time_estimate(config, self.status.update, seconds, self.clock.last_pause))
        return step

    def _update(self, step: Step | GraphedStep, update: int) -> bool:
        """One update, and what is due after it; whether it was the last."""
        config, validator = self.config, self.setup.validator
        set_learning_rate(self.setup.optimiser, config.learning_rate_at(update))
        # A network may draw random numbers of its own, others in every process.
        torch.manual_seed(seed_for(config.run.seed, "dropout", update) + rank())
        batch = self.setup.batch(update)
        indices = batch.indices
        try:
            loss, embeddings = step(batch)
        except NotFinite as error:
            raise self._diverged(update, str(error)) from None

        done = update + 1
        stops, is_late = any_of(self.stop.is_set() or is_orphan(), self._is_late())
        is_last = done == config.run.updates or is_late
        logs = is_last or done % config.run.log_every == 0
        validates = bool(validator.tasks) and (is_last or done % config.validation.every == 0)
        saves = is_last or stops or done % config.run.checkpoint_every == 0
        if not (logs or validates or saves):
            return False

        # To look at numbers makes a GPU wait, so it happens now and then, and always before anything is written.
        if not loss.isfinite():
            raise self._diverged(update, f"the loss is {loss.item()}")
        if not all_finite(self.setup.tensors):
            raise self._diverged(update, "the weights are no longer finite")
        self.status = replace(self.status, update=done, seconds=self.clock.training, total_seconds=self.clock.total)
        if logs:
            if embeddings is not None and len(embeddings) < len(indices):  # those of this process
                embeddings = whole_of(embeddings, len(indices))
            self._log(loss.item(), mean_average_precision(embeddings, self.setup.labels[indices]))
        if validates:
            self._validate()
            is_last = is_last or self._is_out_of_patience()
        if saves or is_last:
            self._save()
        return stops or is_last

    def _is_late(self) -> bool:
        """By the clock of the first process."""
        return is_first() and self.clock.is_past(self.config.run.minutes)

    def _diverged(self, update: int, how: str) -> ValueError:
        config, folder = self.config, self.files.folder
        if not is_first():  # the weights, and what went wrong with them, are the same in all processes
            return ToldByFirst(f"training broke down at update {update + 1}: {how}")
        from_python = config.method.is_object or config.network.architecture.is_object or config.data.name == GIVEN
        command = "" if from_python else f": rankshot train --config {folder / 'config.json'} --learning-rate …"
        return Diverged(
            f"training broke down at update {update + 1}: {how}. The checkpoint before it is intact in {folder}. A "
            f"lower learning rate may help{command}"
        )

    def _is_over(self) -> bool:
        """Whether a run that is resumed has come to its end already."""
        [is_late] = any_of(self.status.update > 0 and self._is_late())
        return self.status.update >= self.config.run.updates or self._is_out_of_patience() or is_late

    def _is_out_of_patience(self) -> bool:
        """Whether the last `patience` validations have found nothing better."""
        patience = self.config.validation.patience
        if patience is None or self.status.best < 0:
            return False
        return self.status.update - self.status.best_update >= patience * self.config.validation.every

    def _log(self, loss: float, batch_map: float) -> None:
        update, seconds = self.status.update, self.status.seconds
        self.files.log(
            {
                "update": update,
                "loss": loss,
                "batch_map": None if isnan(batch_map) else batch_map,
                "learning_rate": self.config.learning_rate_at(update - 1),
                "seconds": round(seconds, 3),
            }
        )
        per_second = (update - self.logged.update) / (seconds - self.logged.seconds)
        self.callbacks.updated(update, loss, batch_map, per_second)
        self.logged = self.status

    def _validate(self) -> None:
        """Measure the network, and save it if it is the best so far."""
        update = self.status.update
        with self.clock.paused():
            weights = self.setup.averaged_weights(update)
            results, score = self.setup.validator.measure(weights)
            score = told_by_first(score)  # which may differ in its last digit, and decides when to stop
            means, is_best = fewshot.summary(results), score > self.status.best
            if is_best:
                self.files.save_model(weights or self.setup.model.state_dict(), update, means)
                self.status = replace(self.status, best=score, best_update=update)
            self.files.log({"update": update, "validation": means, "best": is_best})
            self.callbacks.validated(update, results, is_best)

    def _save(self) -> None:
        """A checkpoint; and the network, where no validation chooses the best."""
        if not self.setup.validator.tasks:
            weights = self.setup.averaged_weights(self.status.update) or self.setup.model.state_dict()
            self.files.save_model(weights, self.status.update, {})
        self._save_state()

    def _save_state(self) -> None:
        self.files.save_state(self.setup.tensors, self.status)


def classes_learned(config: TrainConfig, folder: Path, images: Images, *, resume: bool) -> list[str]:
    """All that the network has learned from, also before this run: none of it is unseen."""
    learned, init = [*images.seen.classes], config.network.init
    if init is None:
        return learned
    is_there = resume and run_folder.is_run(folder)
    before = run_folder.classes_of(folder if is_there else folder_of(init)) or []
    if images.held_out is not None and set(before) & set(images.held_out.classes):
        warnings.warn(f"{init} has learned from some of the validation classes: they flatter it", stacklevel=4)
    return list(dict.fromkeys([*learned, *before]))


def _has_statistics(layer: nn.Module) -> bool:
    return isinstance(layer, _BatchNorm) and layer.training


class Diverged(ValueError):
    """The loss or the weights are no longer finite."""


def all_finite(tensors: dict[str, Tensor]) -> bool:
    return bool(torch.stack([tensor.isfinite().all() for tensor in tensors.values()]).all())


def mean_average_precision(embeddings: Tensor | None, labels: Tensor) -> float:
    """How well the images of a batch retrieve one another; nan where no two are of one class, or none is embedded."""
    if embeddings is None:
        return nan
    vectors = unit_vectors(embeddings)
    relevance, valid = ranking.relevance_of(labels)
    return float(ranking.average_precision(vectors @ vectors.T, relevance, valid).nanmean())
