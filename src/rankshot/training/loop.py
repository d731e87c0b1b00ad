"""The training loop, top to bottom: data, network, then one update after another, with validation and checkpoints.

Update number i depends on the config and on the updates before it, and on nothing else: batches and random numbers come
from (seed, i). So a run that was stopped, in whatever way, goes on exactly where its last checkpoint stands.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import torch
from torch import Tensor, nn

from rankshot import data, fewshot, ranking
from rankshot.data.augmentation import OF_IMAGE, RANDOM_NUMBERS, check_augmentations
from rankshot.data.loading import own_source
from rankshot.data.store import NoClasses
from rankshot.methods import Given, Method, system
from rankshot.models import Conv4
from rankshot.models.pretrained import build, fill, from_pretrained
from rankshot.models.shipped import folder_of, full_name
from rankshot.randomness import generator_for
from rankshot.tensors import read_tensors, write_tensors
from rankshot.vectors import unit_vectors

from . import run_folder
from .config import TrainConfig
from .progress import Progress, in_words, progress_for
from .run_folder import Standing
from .state import Average, adam, live_tensors, set_learning_rate
from .step import GraphedStep, Step, repeatable, seconds_an_update
from .stopping import stop_signals

WAYS = (5, 20)  # of validation, where the config leaves it open
MOST_CLASSES = 2**13  # that have a random number of their own


def train(config: TrainConfig, folder: str | Path, *, resume: bool = False, progress: Progress | None = None) -> Standing:
    """Train into a new folder, or with `resume` go on with the run that is there; returns how far it came.

    It comes less far than `config.updates` only when it is asked to stop (Ctrl-C, SIGTERM), and leaves a checkpoint then.
    `progress` is told what happens; without one, a bar or lines are shown.
    """
    config.check()
    folder, config = Path(folder), replace(config, init=full_name(config.init))
    device, precision = where_to_train(config)
    seen = data.load(config.data, config.split, config.root)
    images = seen.with_rotations() if config.rotations else seen
    try:
        held_out = load(config, "val") if config.validate_every else None
    except NoClasses as error:
        raise ValueError(f"{error}: to train without validation, set validate_every to 0") from None
    pixels, labels = on_device(images, device)
    held_out_pixels = None if held_out is None else on_device(held_out, device)[0]
    check_augmentations(config.augment, images.images.shape[1:])
    given = given_for(config, images.images.shape[1:], len(images.classes))
    goes_on = resume and run_folder.has_checkpoint(folder)  # which has all weights
    preprocess = data.preprocess_of(config.data, config.root)
    check_apart(config.data, folder, config.root)
    start = folder / run_folder.START  # its first weights, whatever has become of where they came from
    model, method = first_weights(replace(config, init=None) if goes_on else config, given, start)
    try:
        sampler = method.sampler(labels, given, config.seed)
    except ValueError as error:
        raise ValueError(f"{error} (batch_classes is {config.batch_classes}, batch_size {config.batch_size})") from None
    model, method = model.to(device).train(), method.to(device)
    method.precision = precision
    if not method.mixed and config.precision == "bfloat16":
        raise ValueError(f"{config.method} computes in float32 alone: set precision to 'auto' or 'float32'")
    tasks = validation_tasks(config, held_out, model, getattr(method, "shot", None))
    decisive = method.decisive(tasks)
    optimiser = adam(model, method, config.first_learning_rate, device)
    average = Average(model, config.average) if config.average else None
    tensors = live_tensors(model, method, optimiser, average)

    with run_folder.kept_alone(folder), stop_signals() as stop, repeatable():
        learned = [*seen.classes]
        if config.init is not None:  # what those weights have learned from is not unseen either
            is_there = resume and run_folder.is_run(folder)
            before = run_folder.classes_of(folder if is_there else folder_of(config.init)) or []
            learned = list(dict.fromkeys([*learned, *before]))
            if held_out is not None and set(before) & set(held_out.classes):
                warnings.warn(
                    f"{config.init} has learned from some of the validation classes: they flatter it", stacklevel=2
                )
        run_folder.begin(folder, config, type(method).network(given), learned, preprocess, resume=resume)
        if config.init is not None and not goes_on and not start.is_file():
            write_tensors(start, model.state_dict(), {})
        standing = run_folder.load_state(folder, tensors)
        with (
            run_folder.metrics_after(folder, standing.update if standing.has_begun else -1) as metrics,
            progress_for(f"{config.data} {config.method}", config.updates, standing.update, progress) as progress,
        ):
            threads = torch.get_num_threads()
            if standing.update == 0:
                run_folder.save_state(folder, tensors, standing)  # there is always something to go on from
            elif standing.threads != threads and device.type == "cpu":
                progress.said(f"began with {standing.threads} threads, goes on with {threads}: last bits may differ")
            standing = replace(standing, threads=threads)
            began = time.perf_counter() - standing.seconds

            def validate(done: int, candidate: dict[str, Tensor]) -> Standing:
                """Measure a network, and keep it if it is the best."""
                nonlocal began
                assert held_out is not None
                pause = time.perf_counter()
                with loaded_with(model, candidate) if average else nullcontext():
                    results = fewshot.evaluate(
                        model, held_out, tasks, config.validation_episodes, config.seed, config.norm, held_out_pixels
                    )
                judged, means = results[decisive].mean, fewshot.summary(results)
                is_best = judged > standing.best
                if is_best:
                    run_folder.save_model(folder, candidate, done, means)
                metrics.write({"update": done, "validation": means, "best": is_best})
                progress.validated(done, results, is_best)
                began += time.perf_counter() - pause  # updates a second are those of training
                return replace(standing, best=judged, best_update=done) if is_best else standing

            pause = None
            if config.init is not None and tasks and not standing.has_begun:
                progress.said(f"measuring {config.init} on the validation classes")
                asked = time.perf_counter()
                standing = validate(0, model.state_dict())  # what it begins with may stay the best
                pause = time.perf_counter() - asked
                metrics.wait_for_disk()
                run_folder.save_state(folder, tensors, standing)

            eager = Step(model, method, optimiser, pixels, labels, config.augment, average)
            step: Step | GraphedStep = eager
            if device.type == "cuda" and standing.update < config.updates:
                step = GraphedStep(eager, tensors, sampler.draw(0), noise(config, 0, labels[sampler.draw(0)]))
            if standing.update < config.updates:
                first = sampler.draw(standing.update)
                with suppress(ValueError):  # a loss that finds its batch not finite says so again, in its turn
                    each = seconds_an_update(step, tensors, first, noise(config, standing.update, labels[first]))
                    progress.said(ahead(config, standing.update, each, pause, len(tasks)))
            began, logged = time.perf_counter() - standing.seconds, standing
            for update in range(standing.update, config.updates):
                set_learning_rate(optimiser, config.learning_rate_at(update))
                indices = sampler.draw(update)
                try:
                    value, embeddings = step(indices, noise(config, update, labels[indices]))
                except ValueError as error:  # the loss looks at its batch, and has found it not finite
                    raise broken_down(update, str(error), folder) from None

                done, stops = update + 1, stop.is_set()
                is_last = done == config.updates
                logs = is_last or done % config.log_every == 0
                validates = bool(tasks) and (is_last or done % config.validate_every == 0)
                saves = is_last or stops or done % config.checkpoint_every == 0
                if not (logs or validates or saves):
                    continue

                # To look at numbers makes a GPU wait, so it happens now and then, and always before anything is written.
                if not value.isfinite():
                    raise broken_down(update, f"the loss is {value.item()}", folder)
                if not all_finite(tensors):
                    raise broken_down(update, "the weights are no longer finite", folder)
                seconds = time.perf_counter() - began
                standing = replace(standing, update=done, seconds=seconds)
                if logs:
                    batch_map = mean_average_precision(embeddings, labels[indices])
                    told = {"update": done, "loss": value.item(), "batch_map": None if isnan(batch_map) else batch_map}
                    metrics.write({**told, "learning_rate": config.learning_rate_at(update), "seconds": round(seconds, 3)})
                    per_second = (done - logged.update) / (seconds - logged.seconds)
                    progress.updated(done, value.item(), batch_map, per_second)
                    logged = standing
                if validates:
                    standing = validate(done, kept(model, average, done))
                if saves:
                    if not tasks:
                        run_folder.save_model(folder, kept(model, average, done), done, {})
                    metrics.wait_for_disk()  # first: a checkpoint counts on the lines before it
                    run_folder.save_state(folder, tensors, standing)
                if stops:
                    break
    return standing


def check_apart(name: str, folder: Path, root: str | None) -> None:
    """A run within the images that it learns from would be one of their classes."""
    source = own_source(name, root)
    if source is not None and source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"{folder} lies within the images of {name}: name a folder elsewhere with --run")


def ahead(config: TrainConfig, done: int, each: float, pause: float | None, tasks: int) -> str:
    """How long it will take, as far as one can tell.

    each    seconds of an update
    pause   seconds of a validation, where one was made already
    """
    updates = config.updates - done
    told = f"{updates:,} update{'s' * (updates != 1)} of {seconds_told(each)}"
    if not tasks:
        return f"about {in_words(updates * each)}: {told}"
    count = -(-config.updates // config.validate_every) - done // config.validate_every
    validations = f"{count:,} validation{'s' * (count != 1)}"
    if pause is None:
        return f"about {in_words(updates * each)}, and {validations}: {told}"
    return f"about {in_words(updates * each + count * pause)}: {told}, {validations} of {seconds_told(pause)}"


def seconds_told(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


class Diverged(ValueError):
    """Training has come to numbers that are none."""


def broken_down(update: int, how: str, folder: Path) -> Diverged:
    return Diverged(
        f"training broke down at update {update + 1}: {how}. The checkpoint before it is intact in {folder}. A lower "
        f"learning rate may help: rankshot train --config {folder / 'config.json'} --learning-rate …"
    )


def where_to_train(config: TrainConfig) -> tuple[torch.device, torch.dtype]:
    """The device, and what the network computes in there."""
    has_gpu = torch.cuda.is_available()
    if config.device == "cuda" and not has_gpu:
        raise ValueError("device is 'cuda', but torch finds no CUDA device here: use 'cpu' or 'auto'")
    device = torch.device("cuda" if has_gpu and config.device != "cpu" else "cpu")
    by_itself = "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    precision: torch.dtype = getattr(torch, by_itself if config.precision == "auto" else config.precision)
    return device, precision


def load(config: TrainConfig, split: str) -> data.ImageSet:
    """One split of the config's data set."""
    images = data.load(config.data, split, config.root)
    return images.with_rotations() if config.rotations else images


def on_device(images: data.ImageSet, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images as uint8, and labels. On a CPU the images stay where they are."""
    return images.pixels().to(device), torch.from_numpy(images.labels).to(device)


def validation_tasks(
    config: TrainConfig, images: data.ImageSet | None, model: object = None, shot: int | None = None
) -> list[fewshot.Task]:
    """Classification and retrieval of every way, as far as the model can answer; also by the shots that it learns with."""
    if images is None:
        return []
    if len(images.classes) < 2:
        raise ValueError(
            f"{config.data} has a single validation class: to train without validation, set validate_every to 0"
        )
    most = min(len(images.classes), getattr(model, "most_ways", len(images.classes)))
    ways = config.validation_ways or {min(way, most) for way in WAYS}
    learned = (
        {shot} if shot is not None and shot < min(fewshot.Classification.per_class, images.smallest_class) else set[int]()
    )
    tasks = fewshot.tasks_for(images, ways, sorted({*config.validation_shots, *learned}))
    if not any(fewshot.can_answer(model, task) for task in tasks):
        raise ValueError(f"validation_ways {ways}: this network was made for tasks of up to {most} classes")
    return [task for task in tasks if fewshot.can_answer(model, task)]


def given_for(config: TrainConfig, shape: tuple[int, ...], classes: int) -> Given:
    """What a method is made for, with images of this shape (C, H, W) and so many classes to learn from."""
    embedder = {
        "name": "conv4",
        "in_channels": shape[0],
        "filters": config.filters,
        **({"mirror": True} if config.mirror else {}),
    }
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        dimensions = build(embedder).eval()(torch.zeros(1, *shape)).shape[1]
    return Given(embedder, dimensions, classes, config.batch_classes, config.batch_size, config.to_json())


def first_weights(config: TrainConfig, given: Given, start: Path) -> tuple[nn.Module, Method]:
    """The network and how it learns as the seed has them, whatever torch's global generator has been through; with `init`
    as the run keeps them in `start`, or for a new run as they are there."""
    chosen = system(config.method)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(generator_for(config.seed, "weights").initial_seed())
        model, method = build(chosen.network(given)), chosen(given)
    if chosen.learn is Method.learn and not callable(getattr(method, "loss", None)):
        raise ValueError(f"the method {config.method!r} has no loss: give its class a `loss(embeddings, labels)`")
    if config.init is not None and start.is_file():
        fill(model.state_dict(), read_tensors(start), start)
    elif config.init is not None:
        begin_with(model, config.init)
    return model, method


def begin_with(model: nn.Module, init: str) -> None:
    """The weights of another network's Conv4, into this one's."""
    ours, theirs = (
        next((each.state_dict() for each in network.modules() if isinstance(each, Conv4)), None)
        for network in (model, from_pretrained(init))
    )
    if ours is None or theirs is None:
        raise ValueError(f"{init} cannot be begun with: only a Conv4 can, with another")
    (filters, channels), (wanted, given) = (each["0.0.weight"].shape[:2] for each in (theirs, ours))
    if (filters, channels) != (wanted, given):
        raise ValueError(
            f"{init} has {filters} filters and sees images of {channels} channels: this network has {wanted} filters, and "
            f"its images {given} channels (`data.prepared` makes images of one's own as weights want them)"
        )
    fill(ours, {name: each for name, each in theirs.items() if name in ours}, folder_of(init))


def noise(config: TrainConfig, update: int, labels: Tensor) -> Tensor:
    """Random numbers for the augmentation of one batch: some of each image, and one of its class."""
    device = labels.device
    if not config.augment:
        return torch.zeros(len(labels), RANDOM_NUMBERS, device=device)
    generator = generator_for(config.seed, "noise", update, device=device)
    numbers = nn.functional.pad(torch.rand(len(labels), OF_IMAGE, generator=generator, device=device), (0, 1))
    if "turn" in config.augment:
        numbers[:, OF_IMAGE] = torch.rand(MOST_CLASSES, generator=generator, device=device)[labels % MOST_CLASSES]
    return numbers


def kept(model: nn.Module, average: Average | None, updates: int) -> dict[str, Tensor]:
    """The network that a run is for: the average of the weights, or the weights."""
    return model.state_dict() if average is None else average.after(updates)


@contextmanager
def loaded_with(model: nn.Module, state: dict[str, Tensor]) -> Iterator[None]:
    """The model with other weights, for a while; its tensors stay where they are."""
    before = {name: each.clone() for name, each in model.state_dict().items()}
    model.load_state_dict(state)
    try:
        yield
    finally:
        model.load_state_dict(before)


def all_finite(tensors: dict[str, Tensor]) -> bool:
    return bool(torch.stack([each.isfinite().all() for each in tensors.values()]).all())


def mean_average_precision(embeddings: Tensor | None, labels: Tensor) -> float:
    """How well the images of a batch retrieve one another; nan where no two are of one class, or none is embedded."""
    if embeddings is None:
        return nan
    unit = unit_vectors(embeddings)
    relevance, valid = ranking.relevance_of(labels)
    return float(ranking.average_precision(unit @ unit.T, relevance, valid).nanmean())
