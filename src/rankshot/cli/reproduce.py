"""`rankshot reproduce`."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Annotated

import tyro

from rankshot.data import prepared
from rankshot.files import write_whole
from rankshot.reproduce import study_tables
from rankshot.reproduce.drawing import draw_method
from rankshot.reproduce.figures import draw_all
from rankshot.reproduce.job import Run, result_of, run_in
from rankshot.reproduce.photographs import tables as of_photographs
from rankshot.reproduce.photographs.stages import perform_all, stages
from rankshot.reproduce.plan import BENCHMARKS, plan
from rankshot.reproduce.repeat import check_comparable, compared
from rankshot.reproduce.run_all import check, run_all
from rankshot.reproduce.studies import studies
from rankshot.reproduce.systems import systems
from rankshot.reproduce.tables import all_tables
from rankshot.reproduce.trials import trials
from rankshot.terminal import counting, say

from .parsing import NO_DEFAULT, parsed

PHOTOGRAPHS = "photographs"


@dataclass(frozen=True)
class Options:
    """Make the paper's tables and figures from real data: omniglot, mini-imagenet, cub.

    Walks an ordered list of runs, the rows of the tables first. Every run leaves a json below --results, and is not run
    again while that is there; stopped in the middle, it goes on where it was. Then: rankshot reproduce --tables

    'photographs' makes what goes beyond the paper: ResNet-12 on mini-ImageNet, and EfficientNet-Lite0 taught birds and
    products by every loss.
    """

    data: Annotated[tuple[str, ...], tyro.conf.Positional, NO_DEFAULT] = ()
    """Data sets whose runs to perform, or 'photographs'."""
    tables: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Write tables.md and figures/ from the json files that are there."""
    trials: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Perform the search for a recipe instead: short runs, judged by validation classes."""
    systems: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Perform the runs of all other systems instead, one each (docs/systems.md)."""
    studies: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Perform the studies beyond the paper instead, of omniglot and mini-imagenet: objectives, signs, batches, MAML; of
    mini-imagenet also the authors' settings, longer runs, a centred head and weight decay."""
    list: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Only tell what runs there are, and which are done."""
    only: str = "*"
    """Runs whose names match this pattern, such as 'omniglot/paper/map-dlm/*'."""
    again: Path | None = None
    """Run what this json tells about once more, and compare."""
    results: Path = Path("results")
    """Where the json files are."""
    runs: Path = Path("runs/reproduce")
    """Where the run folders are."""
    jobs: int = 1
    """How many runs at a time."""
    seconds: float | None = None
    """Begin no run after so many seconds."""
    cub: Path | None = None
    """For 'photographs': folder of CUB's whole pictures, with birds 1-80, 81-100 and 101-200 in train, val and test."""
    grocery: Path | None = None
    """For 'photographs': folder of products, with train, val and test."""
    root: str | None = None
    """Folder of all prepared data. None: RANKSHOT_DATA, or the cache folder."""


def main(arguments: Sequence[str]) -> int:
    options = parsed(Options, arguments, "reproduce")
    for name in options.data:
        if name not in (*BENCHMARKS, PHOTOGRAPHS):
            raise ValueError(
                f"unknown data set {name!r}: the paper has {', '.join(map(repr, BENCHMARKS))}; there is {PHOTOGRAPHS!r} too"
            )
    if options.list and (options.tables or options.again):
        raise ValueError("--list only tells what runs there are: give it without --tables and --again")
    if not options.data and (lists_in(options) or options.list or not (options.tables or options.again)):
        raise ValueError(f"say what to reproduce: {', '.join(BENCHMARKS)}; or --tables, from what is there")
    check(options.jobs, options.seconds)
    code = 0
    if options.again is not None:
        code = run_again(options)
    if PHOTOGRAPHS in options.data:
        code = code or perform_photographs(options)
    if names := [name for name in dict.fromkeys(options.data) if name != PHOTOGRAPHS]:
        listed = (runs_of(name, options) for name in names)
        runs = [placed(run, options) for benchmark_runs in listed for run in benchmark_runs]
        runs = [run for run in runs if fnmatch.fnmatch(run.name, options.only)]
        if not runs:
            none = f"no run of {' and '.join(names)} is called {options.only!r}: --list tells what there is"
            kind = " ".join(lists_in(options))
            raise ValueError(f"there are no {kind} runs of {' and '.join(names)}" if options.only == "*" else none)
        if options.list:
            if not options.results.is_dir():
                say(f"there is no folder {options.results} here", stream=sys.stderr)
            for run in runs:
                say(f"{'done' if result_of(run, options.results) else '    '}  {run.name}")
            return code
        for name in names:
            with counting(name) as progress:
                prepared(name, options.root, progress=progress)
        left = run_all(runs, options.results, options.runs, jobs=options.jobs, seconds=options.seconds)
        say(f"{len(runs) - len(left)} of {len(runs)} runs are done" + (f"; next: {left[0].name}" if left else ""))
        code = code or int(bool(left) and options.seconds is None)
    if options.tables:
        if not options.results.is_dir():
            raise FileNotFoundError(
                f"there is no folder {options.results}: rankshot reproduce {next(iter(BENCHMARKS))} makes it"
            )
        for name in BENCHMARKS:
            for run in (*plan(name), *systems(name), *studies(name)):
                result_of(run, options.results)  # complains about a record of other settings
        tables = [page(options.results) for page in (all_tables, study_tables.page, of_photographs.page)]
        write_whole(options.results / "tables.md", "\n".join(filter(None, tables)))
        figures = options.results / "figures"
        for path in [
            options.results / "tables.md",
            *draw_all(options.results, figures),
            draw_method(figures / "method.png"),
        ]:
            say(path)
    return code


def perform_photographs(options: Options) -> int:
    if lists := lists_in(options):
        raise ValueError(f"{PHOTOGRAPHS} has one list of runs: give it without {' and '.join(lists)}")
    if options.root is not None:
        os.environ["RANKSHOT_DATA"] = options.root  # of the processes that it starts, too
    folders = {"cub": options.cub, "grocery": options.grocery}
    there_are = stages(options.results, options.runs / PHOTOGRAPHS, folders, options.jobs)
    chosen = [stage for stage in there_are if fnmatch.fnmatch(stage.name, options.only)]
    if not chosen:
        raise ValueError(f"no stage of {PHOTOGRAPHS} is called {options.only!r}: --list tells what there is")
    if options.list:
        say(*map(str, chosen))
        return 0
    is_whole = perform_all(chosen, options.seconds)
    return int(not is_whole and options.seconds is None)


def runs_of(name: str, options: Options) -> Sequence[Run]:
    if len(lists := lists_in(options)) > 1:
        raise ValueError(f"{' and '.join(lists)} are different lists of runs: give one of them")
    if options.trials:
        return trials(name, options.results)
    return systems(name) if options.systems else studies(name) if options.studies else plan(name)


def lists_in(options: Options) -> Sequence[str]:
    """Which lists of runs were asked for in place of the plan."""
    return [f"--{name}" for name in ("trials", "systems", "studies") if getattr(options, name)]


def placed(run: Run, options: Options) -> Run:
    return replace(run, config=run.config.changed(root=options.root))


def run_again(options: Options) -> int:
    assert options.again is not None
    run = placed(run_in(options.again), options)
    check_comparable(options.again)
    with counting(run.config.data.name) as progress:
        prepared(run.config.data.name, options.root, progress=progress)
    folder = next(path for n in count(1) if not (path := options.runs / "again" / f"{run.name}-{n}" / "results").exists())
    say(f"in {folder.parent}; stopped, it goes on there when this is called again")
    say(*compared(options.again, run, folder.parent).split("\n"))
    return 0
