"""report.html: how good a run is, how it learned, what it retrieves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from rankshot.fewshot import Answerer
from rankshot.files import write_whole
from rankshot.models.folder_files import CONFIG
from rankshot.schema import read_json
from rankshot.training.run_folder import read_metrics

from .chart import Points, chart
from .embedding_map import embedding_map
from .html_page import html_page
from .measured import Measured, Protocol, rule_for
from .mixed_up import mixed_up
from .retrievals import retrievals
from .table import html_table


def write_report(path: str | Path, columns: Sequence[Measured], protocol: Protocol) -> None:
    """Write report.html: a table of all networks, their learning curves, and what the first of them retrieves.

    A network without a run's folder has no curve; where none has one, there are neither curves nor settings.

    Args:
        path: of the file.
        columns: the networks with their results; the first that is a run, or else the first, is shown in pictures.
        protocol: how they were measured.

    Raises:
        ValueError: if there are no networks.

    Examples:
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from rankshot import models, report
        >>> for name, grey in {"dark": 10, "bright": 200}.items():
        ...     Path("pictures", name).mkdir(parents=True)
        ...     for number in range(4):
        ...         Image.new("L", (32, 32), grey + number).save(f"pictures/{name}/{number}.png")
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-mini-imagenet"
        >>> protocol = report.protocol_for(
        ...     [folder], data="pictures", root="prepared", split="all", ways=[2], shots=[1], episodes=10
        ... )
        >>> measured = report.measure(folder, protocol, "conv4")
        >>> report.write_report(Path("report.html"), [measured], protocol)
        >>> "<title>conv4 on pictures" in Path("report.html").read_text()
        True
    """
    if not columns:
        raise ValueError("there is nothing to report on: give at least one network that was measured")
    runs = [column for column in columns if column.folder is not None]
    first = (runs or columns)[0]
    n_classes, n_images = len(protocol.images.classes), len(protocol.images)
    seen = "some of which were in training" if protocol.split in ("train", "trainval") else "none of which was in training"
    lead = (
        f"Measured on the {protocol.split} split of {protocol.data}: {n_classes} classes, {seen}, "
        f"{n_images} images. {protocol.episodes} episodes a task (seed {protocol.seed}), batch norm by "
        f"{'running averages' if protocol.batch_norm == 'running' else 'the statistics of each batch'}, "
        f"classified by the rule {rule_for(first.model, protocol) or 'of its own'}."
    )
    sections = {
        "How good is it?": f"<div class=scroll>{html_table(columns)}</div><p class=note>Means with 95 % intervals. In "
        "<i>K-shot N-way</i> tasks K images of each of N classes are labelled, and the others are to be classified. In "
        "<i>retrieval</i> every image ranks all others; mAP is 100 % when its own class always comes first.</p>",
    }
    if runs:
        sections["How did it learn?"] = curves(runs)
    if not isinstance(first.model, Answerer):  # who only answers has no embeddings to look at
        if (rule := rule_for(first.model, protocol)) is not None:
            sections["Which classes does it mix up?"] = mixed_up(first.model, protocol.images, protocol.seed, rule)
        sections["What does it retrieve?"] = retrievals(first.model, protocol.images, protocol.seed)
        sections["What lies near what?"] = embedding_map(first.model, protocol.images, protocol.seed)
    if first.folder is not None:
        sections["Settings"] = settings(read_json(Path(first.folder) / CONFIG))
    page = html_page(f"{first.name} on {protocol.data}", lead, sections)
    write_whole(Path(path), page)


def curves(runs: Sequence[Measured]) -> str:
    """Validation of every task, and the training batches themselves."""
    histories = {run.name: read_metrics(Path(run.folder)) for run in runs if run.folder}
    tasks = {task: None for lines in histories.values() for line in lines for task in line.get("validation", {})}
    charts = [
        chart(f"{task} on validation classes, %", {name: _validation(lines, task) for name, lines in histories.items()})
        for task in tasks
    ]
    batches = {name: _training(history, "batch_map", 100) for name, history in histories.items()}
    if any(batches.values()):
        charts.append(chart("mAP of training batches, %", batches))
    for own, history in histories.items():  # losses of different methods are not to be compared: a chart each
        charts.append(
            chart(f"loss of {own}", {name: _training(history, "loss", 1) if name == own else [] for name in histories})
        )
    note = "Along the bottom: updates. The value of a ranking loss need not fall while the rankings get better."
    return f"<div class=charts>{''.join(charts)}</div><p class=note>{note}</p>"


def _validation(lines: Sequence[dict[str, Any]], task: str) -> Points:
    results = ((line["update"], line.get("validation", {}).get(task)) for line in lines)
    return [(update, 100 * result["mean"]) for update, result in results if result is not None]


def _training(lines: Sequence[dict[str, Any]], name: str, factor: float) -> Points:
    return [(line["update"], factor * line[name]) for line in lines if line.get(name) is not None]


def settings(config: dict[str, Any]) -> str:
    rows = (f"<tr><th scope=row>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in config.items())
    return f"<details><summary>All settings of this run</summary><table class=settings>{''.join(rows)}</table></details>"
