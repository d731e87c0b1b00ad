"""The training loop, top to bottom: data, network, then one update after another, with validation and checkpoints.

Update number i depends on the config and on the updates before it, and on nothing else: batches and random numbers come
from (seed, i). So a run that was stopped, in whatever way, goes on exactly where its last checkpoint stands.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankshot import fewshot, ranking
from rankshot.data import ImageSet
from rankshot.data.augmentation import OF_IMAGE, RANDOM_NUMBERS
from rankshot.methods import Method
from rankshot.models.network import preprocess_of
from rankshot.models.shipped import folder_of
from rankshot.randomness import generator_for
from rankshot.tensors import write_tensors
from rankshot.vectors import NotFinite, unit_vectors

from . import run_folder
from .assembly import (
    Images,
    Objects,
    check_apart,
    described,
    images_for,
    network_and_method,
    on_device,
    where_to_train,
)
from .callbacks import Callback, Everybody, loggers_for
from .clock import Clock
from .config import TrainConfig
from .optimiser import freeze, make_optimiser, set_learning_rate
from .progress import in_words, progress_for
from .run_folder import RunStatus
from .state import Average, live_tensors
from .step import GraphedStep, Step, put_back, repeatable, seconds_an_update
from .stopping import Interrupted, stop_signals
from .validation import Validator

MOST_CLASSES = 2**13  # that have a random number of their own


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
    """Train into a new folder, or with `resume` go on with the run that is there; returns how far it came.

    Asked to stop (Ctrl-C, SIGTERM), it leaves a checkpoint and raises `KeyboardInterrupt`.

    Args:
        config: every setting; `TrainConfig.of` makes one by the names of the command line.
        folder: of the run.
        resume: go on where the last checkpoint stands.
        network: an embedding network in place of the config's, with its weights: one that is wrapped (`rankshot.wrap`).
        method: a `Method`, or what makes one of a `Context`, in place of the config's.
        loss: loss(embeddings, labels) -> scalar, in place of a method.
        train_set: images to learn from, in place of the config's data.
        val_set: images of other classes to validate on.
        callbacks: told what happens.
        progress: shown to a person. None: a bar, or lines; `Callback()` is silent.
    """
    if not isinstance(config, TrainConfig):
        raise TypeError(f"config must be a TrainConfig, got {config!r:.60}: TrainConfig.of(updates=100) is one")
    if not all(isinstance(each, Callback) for each in (*callbacks, *([] if progress is None else [progress]))):
        raise TypeError("callbacks and progress must be objects of rankshot.training.Callback, or of a subclass")
    folder, objects = Path(folder), Objects(network, method, loss, train_set, val_set)
    config = objects.named_in(config)
    loggers = loggers_for(config.run.loggers)
    device, precision = where_to_train(config)
    images = images_for(config, objects)
    check_apart(config.data.name, folder, config.data.root)
    goes_on = resume and run_folder.has_checkpoint(folder)  # which has all weights
    start = folder / run_folder.START
    begins = replace(config, network=replace(config.network, init=None)) if goes_on else config
    model, learner = network_and_method(begins, images.preprocess, len(images.train.classes), objects, start)
    if not learner.mixed and config.run.precision == "bfloat16":
        raise ValueError(f"{config.method.name} computes in float32 alone: set precision to 'auto' or 'float32'")
    learner.precision = precision
    model, learner = model.to(device).train(), learner.to(device)
    freeze(model, config.network.frozen)
    pixels, labels = on_device(images.train, device)
    sampler = sampler_for(learner, labels, config)
    held_out = None if images.held_out is None else on_device(images.held_out, device)[0]
    validator = Validator(config, model, learner, images.held_out, held_out)
    optimiser = make_optimiser(config.optimiser, model, learner, config.first_learning_rate, device)
    average = Average(model, config.optimiser.average) if config.optimiser.average else None
    tensors = live_tensors(model, learner, optimiser, average)
    if not goes_on:
        with put_back(tensors):
            try_once(config, model, learner, pixels, labels, sampler.draw(0))

    with run_folder.only_process_in(folder), stop_signals() as stop, repeatable():
        classes = classes_learned(config, folder, images, resume=resume)
        run_folder.begin(folder, config, described(model), classes, preprocess_of(model), resume=resume)
        if not goes_on and not start.is_file() and (config.network.init is not None or network is not None):
            write_tensors(start, model.state_dict(), {})
        status = run_folder.load_state(folder, tensors)
        with (
            run_folder.metrics_after(folder, status.update if status.has_begun else -1) as metrics,
            progress_for(f"{config.data.name} {config.method.name}", config.run.updates, status.update, progress) as shown,
        ):
            everybody = Everybody([shown, *loggers, *callbacks])
            everybody.started(folder, config.flat())
            clock = Clock(status)
            threads = torch.get_num_threads()
            if status.update == 0:
                run_folder.save_state(folder, tensors, status)  # there is always something to go on from
            elif status.threads != threads and device.type == "cpu":
                everybody.said(f"began with {status.threads} threads, goes on with {threads}: last bits may differ")
            status = replace(status, threads=threads)

            def validated(status: RunStatus) -> RunStatus:
                """Measure the network, and keep it if it is the best."""
                with clock.paused():
                    weights = None if average is None or status.update == 0 else average.after(status.update)
                    results, judged = validator.measure(weights)
                    means, is_best = fewshot.summary(results), judged > status.best
                    if is_best:
                        run_folder.save_model(folder, weights or model.state_dict(), status.update, means)
                    metrics.write({"update": status.update, "validation": means, "best": is_best})
                    everybody.validated(status.update, results, is_best)
                return replace(status, best=judged, best_update=status.update) if is_best else status

            pause = None
            if config.network.init is not None and validator.tasks and not status.has_begun:
                everybody.said(f"measuring {config.network.init} on the validation classes")
                asked = time.perf_counter()
                status = validated(status)  # what it begins with may stay the best
                pause = time.perf_counter() - asked
                metrics.wait_for_disk()
                run_folder.save_state(folder, tensors, status)

            is_over = status.update >= config.run.updates or is_out_of_patience(config, status)
            is_over = is_over or (status.update > 0 and clock.is_past(config.run.minutes))
            eager = Step(model, learner, optimiser, pixels, labels, config.data.augment, average, config.optimiser.clip)
            step: Step | GraphedStep = eager
            if not is_over:
                if device.type == "cuda" and config.run.cuda_graph:
                    step = GraphedStep(eager, tensors, sampler.draw(0), noise(config, 0, labels[sampler.draw(0)]))
                first = sampler.draw(status.update)
                with suppress(NotFinite):  # it says so again, in its turn
                    each = seconds_an_update(step, tensors, first, noise(config, status.update, labels[first]))
                    everybody.said(ahead(config, status.update, each, pause, len(validator.tasks)))
            clock.start()
            logged = status
            for update in () if is_over else range(status.update, config.run.updates):
                set_learning_rate(optimiser, config.learning_rate_at(update))
                indices = sampler.draw(update)
                try:
                    value, embeddings = step(indices, noise(config, update, labels[indices]))
                except NotFinite as error:
                    raise diverged(update, str(error), folder) from None

                done, stops = update + 1, stop.is_set()
                is_last = done == config.run.updates or clock.is_past(config.run.minutes)
                logs = is_last or done % config.run.log_every == 0
                validates = bool(validator.tasks) and (is_last or done % config.validation.every == 0)
                saves = is_last or stops or done % config.run.checkpoint_every == 0
                if not (logs or validates or saves):
                    continue

                # To look at numbers makes a GPU wait, so it happens now and then, and always before anything is written.
                if not value.isfinite():
                    raise diverged(update, f"the loss is {value.item()}", folder)
                if not all_finite(tensors):
                    raise diverged(update, "the weights are no longer finite", folder)
                status = replace(status, update=done, seconds=clock.training, total_seconds=clock.total)
                if logs:
                    batch_map = mean_average_precision(embeddings, labels[indices])
                    line = {"update": done, "loss": value.item(), "batch_map": None if isnan(batch_map) else batch_map}
                    rate = config.learning_rate_at(update)
                    metrics.write({**line, "learning_rate": rate, "seconds": round(status.seconds, 3)})
                    per_second = (done - logged.update) / (status.seconds - logged.seconds)
                    everybody.updated(done, value.item(), batch_map, per_second)
                    logged = status
                if validates:
                    status = validated(status)
                    is_last = is_last or is_out_of_patience(config, status)
                if saves or is_last:
                    if not validator.tasks:
                        kept = model.state_dict() if average is None else average.after(done)
                        run_folder.save_model(folder, kept, done, {})
                    metrics.wait_for_disk()  # first: a checkpoint counts on the lines before it
                    run_folder.save_state(folder, tensors, status)
                if stops or is_last:
                    break
            everybody.ended(status.update)
    if stop.is_set():
        raise Interrupted(f"stopped after update {status.update}, and its checkpoint is in {folder}")
    return status


def try_once(
    config: TrainConfig, model: nn.Module, method: Method, pixels: Tensor, labels: Tensor, indices: Tensor
) -> None:
    """One batch through network and loss before anything is written: a mistake in one's own is found in time."""
    with suppress(NotFinite):
        loss, _ = method.learn(model, pixels[indices].float() / 255, labels[indices])
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        if shape != ():
            raise ValueError(f"the loss of {config.method.name!r} must be one number, a tensor of shape (), got {shape}")
        if not loss.requires_grad:
            raise ValueError(f"the loss of {config.method.name!r} has no gradient: it does not depend on the embeddings")


def sampler_for(method: Method, labels: Tensor, config: TrainConfig) -> Any:
    try:
        return method.sampler(labels, config.run.seed)
    except ValueError as error:
        asked = f"(batch_classes is {config.batch.classes}, batch_size {config.batch.size})"
        raise ValueError(f"{error} {asked}") from None


def classes_learned(config: TrainConfig, folder: Path, images: Images, *, resume: bool) -> list[str]:
    """All that the network has learned from, also before this run: none of it is unseen."""
    learned, init = [*images.seen.classes], config.network.init
    if init is None:
        return learned
    is_there = resume and run_folder.is_run(folder)
    before = run_folder.classes_of(folder if is_there else folder_of(init)) or []
    if images.held_out is not None and set(before) & set(images.held_out.classes):
        warnings.warn(f"{init} has learned from some of the validation classes: they flatter it", stacklevel=3)
    return list(dict.fromkeys([*learned, *before]))


def is_out_of_patience(config: TrainConfig, status: RunStatus) -> bool:
    """Whether so many validations have found nothing better."""
    if config.validation.patience is None or status.best < 0:
        return False
    return status.update - status.best_update >= config.validation.patience * config.validation.every


def ahead(config: TrainConfig, done: int, each: float, pause: float | None, tasks: int) -> str:
    """How long it will take, as far as one can tell.

    each    seconds of an update
    pause   seconds of a validation, where one was made already
    """
    updates = config.run.updates - done
    told = f"{updates:,} update{'s' * (updates != 1)} of {seconds_told(each)}"
    limit = "" if config.run.minutes is None else f"; it ends after {config.run.minutes:g} minutes at the latest"
    if not tasks:
        return f"about {in_words(updates * each)}: {told}{limit}"
    count = -(-config.run.updates // config.validation.every) - done // config.validation.every
    validations = f"{count:,} validation{'s' * (count != 1)}"
    if pause is None:
        return f"about {in_words(updates * each)}, and {validations}: {told}{limit}"
    return f"about {in_words(updates * each + count * pause)}: {told}, {validations} of {seconds_told(pause)}{limit}"


def seconds_told(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


class Diverged(ValueError):
    """Training has come to numbers that are none."""


def diverged(update: int, how: str, folder: Path) -> Diverged:
    return Diverged(
        f"training broke down at update {update + 1}: {how}. The checkpoint before it is intact in {folder}. A lower "
        f"learning rate may help: rankshot train --config {folder / 'config.json'} --learning-rate …"
    )


def noise(config: TrainConfig, update: int, labels: Tensor) -> Tensor:
    """Random numbers for the augmentation of one batch: some of each image, and one of its class."""
    device, kinds = labels.device, config.data.augment
    if not kinds:
        return torch.zeros(len(labels), RANDOM_NUMBERS, device=device)
    generator = generator_for(config.run.seed, "noise", update, device=device)
    numbers = nn.functional.pad(torch.rand(len(labels), OF_IMAGE, generator=generator, device=device), (0, 1))
    if "turn" in kinds:
        numbers[:, OF_IMAGE] = torch.rand(MOST_CLASSES, generator=generator, device=device)[labels % MOST_CLASSES]
    return numbers


def all_finite(tensors: dict[str, Tensor]) -> bool:
    return bool(torch.stack([each.isfinite().all() for each in tensors.values()]).all())


def mean_average_precision(embeddings: Tensor | None, labels: Tensor) -> float:
    """How well the images of a batch retrieve one another; nan where no two are of one class, or none is embedded."""
    if embeddings is None:
        return nan
    unit = unit_vectors(embeddings)
    relevance, valid = ranking.relevance_of(labels)
    return float(ranking.average_precision(unit @ unit.T, relevance, valid).nanmean())
