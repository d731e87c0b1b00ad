"""`rankshot evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from rankshot import report
from rankshot.data.loading import own_source
from rankshot.files import digest_of
from rankshot.gathering import check_same, failing_together, is_first, is_shared
from rankshot.hardware import device_for
from rankshot.models.folder_files import CONFIG, WEIGHTS
from rankshot.models.pretrained import preprocess_in
from rankshot.models.shipped import folder_of
from rankshot.processes import LONG_PATIENCE, check_gpus, first_of_machine_first
from rankshot.terminal import say
from rankshot.training import TrainConfig
from rankshot.training.agreement import digest
from rankshot.training.fitting import made_ready
from rankshot.training.run_folder import is_run

from .parsing import NO_DEFAULT, Files, parsed
from .together import together, told_once


@dataclass(frozen=True)
class Options:
    """Measure runs on classes they have never seen: K-shot N-way classification, and retrieval.

    Prints a table, and writes RUN/report.html with curves and pictures, and RUN/evaluation.json. Of other data than a run
    was trained on, or another split than test, these are report-DATA-SPLIT.html and evaluation-DATA-SPLIT.json.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, NO_DEFAULT]
    """Run folders, or weights by name, such as conv4-omniglot, or hf:NAME. The report goes into the first; the others stand
    beside it."""
    load: Files = ()
    untrained: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also measure the first run's network as it was before training."""
    data: str | None = None
    """Data set to measure on. None: the one that the runs were trained on."""
    rotations: bool | None = None
    """Count every class four times, turned. None: as in training, on the data that it was trained on; no on other data."""
    split: str = "test"
    """Which of its classes: test, val, those of training, train and trainval, or all, for networks that have learned from
    none of them."""
    root: str | None = None
    """Folder of all prepared data. None: as in training."""
    ways: tuple[int, ...] | None = None
    """How many classes an episode has. None: 5 and 20, or as many as there are."""
    shots: tuple[int, ...] | None = None
    """How many labelled images a class has in classification. None: 1 and 5, if there are more images than that."""
    episodes: int = 1000
    """Episodes of each task."""
    seed: int = 0
    """Of the episodes: the same seed asks the same questions."""
    batch_norm: str = "running"
    """Batch norm: by running averages (fast), or by each batch's own statistics (batch), as the paper did."""
    rule: str | None = None
    """How to classify: logistic (regression on the labelled images), prototype (the nearest class mean), ap (the
    paper's), or nearest. None: logistic on images of your own, ap on other data, or the network's own."""


def main(arguments: Sequence[str]) -> int:
    with together("evaluate", LONG_PATIENCE):
        with failing_together(), told_once(), first_of_machine_first():
            options = parsed(Options, arguments, "evaluate")
            runs = [folder_of(run) for run in options.runs]
            protocol = protocol_of(options, runs)
            check_gpus(device_for("auto"))
        if is_shared():
            weights = {f"weights of {run}": digest_of(run / WEIGHTS) for run in runs}
            check_same({**weights, "images": digest(protocol.images), "options": list(arguments)})
        columns = [report.measure_untrained(runs[0], protocol)] if options.untrained else []
        for folder, name in zip(runs, report.names_of(runs), strict=True):
            columns.append(report.measure(folder, protocol, name))
        if is_first():
            tell(columns, protocol, runs[0])
    return 0


def protocol_of(options: Options, runs: Sequence[Path]) -> report.Protocol:
    """How to measure, with the images made ready."""
    data = options.data
    if data is not None and runs and is_run(runs[0]):
        root = options.root or TrainConfig.from_json(runs[0] / CONFIG).data.root
        if own_source(data, root):
            data = made_ready(data, root, preprocess_in(runs[0]), str(options.runs[0]))
    protocol = report.protocol_for(
        runs,
        ways=options.ways,
        shots=options.shots,
        data=data,
        rotations=options.rotations,
        split=options.split,
        root=options.root,
        episodes=options.episodes,
        seed=options.seed,
        batch_norm=options.batch_norm,
        rule=options.rule,
    )
    return replace(protocol, together=is_shared())


def tell(columns: Sequence[report.Measured], protocol: report.Protocol, run: Path) -> None:
    say(*report.text_table(columns).split("\n"))  # first: what cannot be written is not lost
    for column in columns:
        report.record(column, protocol)
    path = report.report_path(run, protocol.data, protocol.split, protocol.root)
    report.write_report(path, columns, protocol)
    rules = dict.fromkeys(report.rule_for(column.model, protocol) or "its own" for column in columns)
    told = f"{protocol.episodes} episodes a task, with 95 % intervals; rule: {', '.join(rules)}"
    say("", f"{told}. The report: {path}")
