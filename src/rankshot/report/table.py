"""Tasks down, networks across: the same table as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rankshot.fewshot import Result, Retrieval, Task

from .measured import Measured


def cell(result: Result | None) -> str:
    return "–" if result is None else f"{100 * result.mean:.1f} ± {100 * result.interval:.1f}"


def unit(task: Task) -> str:
    return "mAP, %" if isinstance(task, Retrieval) else "accuracy, %"


def lines(columns: Sequence[Measured]) -> list[tuple[Task, list[Result | None]]]:
    """Every task with each network's result; None where it cannot answer, as those that do not embed cannot retrieve."""
    most = max(columns, key=lambda column: len(column.results))
    tasks = dict.fromkeys(result.task for column in (most, *columns) for result in column.results)
    by_task = [{result.task: result for result in column.results} for column in columns]
    return [(task, [results.get(task) for results in by_task]) for task in tasks]


def text_table(columns: Sequence[Measured]) -> str:
    """A table for a terminal: a line for each task, a column for each network.

    Args:
        columns: the networks with their results.

    Returns:
        Lines of equal width, with means and 95 % intervals in %.

    Examples:
        >>> import torch
        >>> from rankshot import fewshot, report
        >>> def measured(name, *values):
        ...     result = fewshot.Result(fewshot.Classification(way=5, shot=1), torch.tensor(values))
        ...     return report.Measured(name, torch.nn.Flatten(), [result], folder=None)
        >>> print(report.text_table([measured("siamese", 0.8, 0.9, 0.7, 1.0), measured("map-dlm", 0.9, 0.9, 1.0, 1.0)]))
                                       siamese     map-dlm
        --------------------------------------------------
        1-shot 5-way  accuracy, %  85.0 ± 12.7  95.0 ± 5.7
    """
    rows = [["", "", *(column.name for column in columns)]]
    for task, results in lines(columns):
        rows.append([str(task), unit(task), *map(cell, results)])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    text = ["  ".join([*_padded(row[:2], widths[:2], "<"), *_padded(row[2:], widths[2:], ">")]) for row in rows]
    text.insert(1, "-" * len(text[0]))
    return "\n".join(text)


def _padded(texts: Sequence[str], widths: Sequence[int], side: str) -> list[str]:
    return [f"{text:{side}{width}}" for text, width in zip(texts, widths, strict=True)]


def html_table(columns: Sequence[Measured]) -> str:
    """The best of each row is bold."""
    head = "".join(f"<th scope=col>{escape(column.name)}</th>" for column in columns)
    body = []
    for task, results in lines(columns):
        best = max(result.mean for result in results if result is not None)
        is_best = (result is not None and result.mean == best and len(results) > 1 for result in results)
        cells = (f"<td{' class=best' * top}>{cell(result)}</td>" for result, top in zip(results, is_best, strict=True))
        body.append(f"<tr><th scope=row>{task}</th><td class=unit>{unit(task)}</td>{''.join(cells)}</tr>")
    return f"<table><thead><tr><th></th><th></th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
