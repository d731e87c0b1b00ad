"""`rankshot train`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from rankshot import fewshot, report
from rankshot.gathering import check_same, failing_together, is_first, told_by_first, world_size
from rankshot.methods.method import method_class, not_in_parts
from rankshot.models.folder_files import CONFIG
from rankshot.models.network import check_embedding_network
from rankshot.processes import first_of_machine_first, is_restart, may_restart
from rankshot.registry import load_files
from rankshot.terminal import say
from rankshot.training import TrainConfig, train
from rankshot.training.assembly import check_apart
from rankshot.training.fitting import fitted, has_classes_to_measure, network_of, resumed, start_of
from rankshot.training.keep_memory import keep_freed_memory
from rankshot.training.run_folder import RunStatus, is_run
from rankshot.training.stopping import Interrupted

from .parsing import parsed_as, peeked, typed
from .together import together, told_once
from .train_options import by_new_names, check_whose, given_in, options_for

EPISODES = 300  # of the comparison with the weights that training began with


class Asked(NamedTuple):
    """The settings of the run, those of them that were typed, its folder (None: a new one), whether to go on with what is
    there, and the options that load files."""

    config: TrainConfig
    given: Mapping[str, Any]
    folder: Path | None
    resume: bool
    loads: list[str]


def main(arguments: Sequence[str]) -> int:
    with together("train"):
        with failing_together(), told_once(), first_of_machine_first():
            asked = asked_by(arguments)
        check_same({"out": str(asked.folder)})
        folder = Path(told_by_first(str(asked.folder or new_folder(asked.config))))
        return trained(with_batches_of_first(asked), folder, asked.loads, resume=asked.resume)


def with_batches_of_first(asked: Asked) -> TrainConfig:
    """Where batches are as large as memory allows, all processes have those of the first."""
    batch = asked.config.batch
    classes, size = told_by_first([batch.classes, batch.size])
    if "batch_size" in asked.given:
        return asked.config
    return asked.config.changed(batch_size=size, **({} if "batch_classes" in asked.given else {"batch_classes": classes}))


def asked_by(arguments: Sequence[str]) -> Asked:
    """The options, with the images made ready."""
    arguments = by_new_names(arguments)
    peek = peeked(arguments)
    loads = [f"--load={file}" for file in peek.load]  # tyro would keep those of the last --load alone
    if may_restart() and peek.out is None:
        raise ValueError("torchrun may start this again (--max-restarts): name the run's folder with --out")
    if is_restart() and is_run(peek.out):
        arguments = [*loads, "--out", str(peek.out), "--resume"]
        peek = peeked(arguments)
    load_files(peek.load)
    start = starting_from(peek, typed(arguments))
    check_whose(arguments, start)
    options = parsed_as(options_for(start), arguments, "train")
    given = given_in(options)
    config = start.changed(**given)
    if world_size() > 1 and not method_class(config.method.name).in_parts:
        raise ValueError(not_in_parts(config.method.name))
    check_apart(config.data.name, options.out or new_folder(config), config.data.root)
    if options.resume and is_run(options.out):
        config = resumed(config, options.out, given)
    else:
        config = fitted(config, {*given, *config.flat()} if options.config else given, preset=options.preset)
    return Asked(config, given, options.out, options.resume, loads)


def trained(config: TrainConfig, folder: Path, loads: list[str], *, resume: bool) -> int:
    begins = config.network.init is not None
    if begins and any(has_classes_to_measure(config, split) for split in ("test", "val")):
        say("a comparison of before and after follows the training; its time is not in the estimate below")
    keep_freed_memory()
    try:
        status = train(config, folder, resume=resume)
    except Interrupted as stopped:
        say(f"{stopped}; to go on: rankshot train {shlex.join([*loads, '--out', str(folder), '--resume'])}")
        return 130
    if not is_first():
        return 0
    say(f"{folder}: update {status.update}, {status.seconds:.0f} s of training")
    if begins:
        before_and_after(folder)
        if advice := advice_where_nothing_is_better(config, status):
            say(advice)
    if has_classes_to_measure(config, "test"):
        say(f"next: rankshot evaluate {shlex.join([str(folder), *loads])}")
    return 0


def starting_from(peek: argparse.Namespace, options: set[str]) -> TrainConfig:
    """The settings that the other options change: those of --config, of the run to resume, or the method's."""
    if peek.resume and peek.out is None:
        raise ValueError("--resume needs to know which run: name its folder with --out")
    if peek.config is not None and peek.preset is not None:
        raise ValueError("--config and --preset both say what to start from: give one of them")
    if peek.network is not None:
        check_embedding_network(peek.network)
    if peek.config is None and not (peek.resume and is_run(peek.out)):
        return chosen(start_of(peeked_settings(peek, options), peek.preset, say), peek)
    start = TrainConfig.from_json(peek.config or peek.out / CONFIG)
    if peek.init not in (None, "None") and peek.network is None:
        start = start.changed(**network_of(peek.init))
    return chosen(start, peek)


def peeked_settings(peek: argparse.Namespace, options: set[str]) -> dict[str, Any]:
    """Those that decide what a run starts from, as far as they were typed; of the others only that they were."""
    values = {name: getattr(peek, name) for name in ("method", "network", "init", "data", "root")}
    typed_names = {option.removeprefix("--").replace("-", "_"): ... for option in options}
    return typed_names | {name: None if value == "None" else value for name, value in values.items() if value is not None}


def chosen(start: TrainConfig, peek: argparse.Namespace) -> TrainConfig:
    """With the method and the network that were typed, whose settings are options then."""
    names = {"method": peek.method, "network": peek.network}
    return start.changed(**{kind: name for kind, name in names.items() if name is not None})


def before_and_after(folder: Path) -> None:
    """What training has made of the weights that it began with, on classes it has not learned from."""
    try:
        protocol = report.unseen_protocol(folder, EPISODES)
        if protocol is None:
            say("nothing is held out to compare with what it began with: no other classes, with two images each")
            return
        before = report.measure_untrained(folder, protocol, "before")
    except (OSError, ValueError) as error:  # training is done and good, whatever else
        say(f"no comparison with what it began with: {error}")
        return
    after = report.measure(folder, protocol, "after")
    say(*report.text_table([before, after]).split("\n"))
    turned = ", turned ones among them" if protocol.rotations else ""
    say(f"{len(protocol.images.classes)} {protocol.split} classes of {protocol.data}{turned}, {EPISODES} episodes a task")
    if worse := where_worse(before.results, after.results):
        say(f"on these classes it has become worse ({', '.join(worse)}): the weights that it began with may serve better")


def where_worse(before: Sequence[fewshot.Result], after: Sequence[fewshot.Result]) -> list[str]:
    """The tasks in which training has lost more than both intervals together."""
    pairs = zip(before, after, strict=True)
    return [str(then.task) for was, then in pairs if was.mean - then.mean > was.interval + then.interval]


def advice_where_nothing_is_better(config: TrainConfig, status: RunStatus) -> str | None:
    """What to change, where the weights that it began with are the ones that are kept."""
    if status.update == 0 or status.best < 0 or status.best_update > 0:
        return None
    start, head = str(config.network.init), config.network.head
    is_new = head is not None and network_of(start).get("head") != head
    if is_new and isinstance(head, int):
        start += " with a new head, which has learned nothing"
    kept = f"no update was better on the validation classes than {start}, and these weights are kept"
    if is_new and head == "whitened":
        kept = f"no update was better on the validation classes than {start} and than the whitening: the better one is kept"
    if status.best >= 1:
        return f"{kept}: they make no mistake there, and more validation classes would tell more"
    rate = config.first_learning_rate
    augment = "" if config.data.augment else ", --augment flip crop for photographs"
    return f"{kept}. What may help: --learning-rate {rate / 10:g} in place of {rate:g}, more classes{augment}"


def new_folder(config: TrainConfig) -> Path:
    """The first of runs/DATA-METHOD, runs/DATA-METHOD-2, … that is not there yet."""
    name = f"{Path(config.data.name).name or Path(config.data.name).resolve().name}-{config.method.name}"
    return next(
        path for path in (Path("runs") / (name if n == 1 else f"{name}-{n}") for n in count(1)) if not path.exists()
    )
