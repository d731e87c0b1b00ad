"""`rankshot train`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Annotated

import tyro

from rankshot import report
from rankshot.data import prepared
from rankshot.data.loading import NAMES, own_source
from rankshot.methods import SYSTEMS, load_systems, settings_for
from rankshot.models.pretrained import CONFIG
from rankshot.terminal import counting, say
from rankshot.training import TrainConfig, train
from rankshot.training.heap import keep_freed_memory
from rankshot.training.loop import check_apart
from rankshot.training.run_folder import is_run

from .own_images import fitted, mirrored_like_its_start, on_own_images
from .parsing import parsed, typed

EPISODES = 300  # of the comparison with the weights that training began with


@dataclass(frozen=True)
class Options:
    """Learn an embedding by ranking: every image of a batch ranks all others, and the rankings get better.

    The run folder holds the settings, the best network, what was measured, and a checkpoint. Then: rankshot evaluate RUN
    """

    run: Path | None = None
    """Folder to make for this run. None: runs/DATA-METHOD, with a number where that exists."""
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Go on with the run in --run exactly where its last checkpoint stands; start it where there is none yet."""
    load: tuple[Path, ...] = ()
    """Python files with methods of your own, which are run first (see docs/systems.md)."""
    preset: str | None = None
    """Start from the settings of the method's own paper for this data set, such as omniglot or mini-imagenet."""
    config: Path | None = None
    """Take the settings from this file, such as config.json of another run; options given here come on top."""
    settings: Annotated[TrainConfig, tyro.conf.OmitArgPrefixes] = field(default_factory=TrainConfig)


def main(arguments: Sequence[str]) -> int:
    files = files_to_load(arguments)
    load_systems(files)
    start = starting_from(arguments)
    options = parsed(Options, arguments, "train", default=Options(settings=start))
    settings = replace(options.settings, options=merged(start.options, options.settings.options))
    given = typed(arguments)
    resumed = options.run if options.resume and options.run is not None and is_run(options.run) else None
    if resumed is None and not given & {"--mirror", "--no-mirror", "--config"}:
        settings = mirrored_like_its_start(settings, given)
    settings.check()
    folder = options.run or new_folder(settings)
    check_apart(settings.data, folder, settings.root)
    if own_source(settings.data, settings.root) and (resumed is None or "--data" in given):
        settings = on_own_images(settings, resumed)
    else:
        with counting(Path(settings.data).name) as told:
            prepared(settings.data, settings.root, told=told)
    if resumed is None and settings.data not in NAMES:
        settings = fitted(settings, given)
    if settings.init is not None and (report.can_be_asked(settings, "test") or report.can_be_asked(settings, "val")):
        say("a comparison with the weights that it begins with comes last, on top of the time told below")
    keep_freed_memory()
    standing = train(settings, folder, resume=options.resume)
    if standing.update < settings.updates:
        again = shlex.join([*(f"--load={file}" for file in files), "--run", str(folder), "--resume"])
        say(f"stopped after update {standing.update}; to go on: rankshot train {again}")
        return 130
    say(f"{folder}: update {standing.update}, {standing.seconds:.0f} s of training")
    if settings.init is not None:
        before_and_after(folder)
    if report.can_be_asked(settings, "test"):
        say(f"next: rankshot evaluate {shlex.join([str(folder), *(f'--load={file}' for file in files)])}")
    return 0


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
    say(*report.text_table([before, report.measure(folder, protocol, "after")]).split("\n"))
    turned = ", turned ones among them" if protocol.rotations else ""
    say(f"{len(protocol.images.classes)} {protocol.split} classes of {protocol.data}{turned}, {EPISODES} episodes a task")


def merged(before: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """The options that a run starts from, with those that are given in the place of those of the same name.

    >>> merged(["tasks=16", "steps=5"], ["steps=1", "shot=5"])
    ('tasks=16', 'steps=1', 'shot=5')
    """
    return tuple({each.partition("=")[0]: each for each in (*before, *given)}.values())


def files_to_load(arguments: Sequence[str]) -> list[Path]:
    """Those of --load: what they bring, the other options may be about."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--load", type=Path, nargs="*", action="extend", default=[])
    known, _ = parser.parse_known_args(arguments)
    return list(known.load)


def starting_from(arguments: Sequence[str]) -> TrainConfig:
    """The settings that the other options change: those of --config, of the run to resume, or the method's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--method", default=TrainConfig.method)
    parser.add_argument("--preset")
    parser.add_argument("--resume", action="store_true")
    known, _ = parser.parse_known_args(arguments)
    if known.resume and known.run is None:
        raise ValueError("--resume needs to know which run: name its folder with --run")
    if known.config is not None and known.preset is not None:
        raise ValueError("--config and --preset both say what to start from: give one of them")
    if known.config is not None:
        return TrainConfig.from_json(known.config)
    if known.resume and (known.run / CONFIG).is_file():
        return TrainConfig.from_json(known.run / CONFIG)
    return TrainConfig(**settings_for(known.method, known.preset)) if known.method in SYSTEMS else TrainConfig()


def new_folder(config: TrainConfig) -> Path:
    """The first of runs/DATA-METHOD, runs/DATA-METHOD-2, … that is not there yet."""
    name = f"{Path(config.data).name or Path(config.data).resolve().name}-{config.method}"
    return next(
        path for path in (Path("runs") / (name if n == 1 else f"{name}-{n}") for n in count(1)) if not path.exists()
    )
