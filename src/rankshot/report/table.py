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
    most = max(columns, key=lambda each: len(each.results))
    tasks = dict.fromkeys(result.task for each in (most, *columns) for result in each.results)
    found = [{result.task: result for result in each.results} for each in columns]
    return [(task, [each.get(task) for each in found]) for task in tasks]


def text_table(columns: Sequence[Measured]) -> str:
    """Lines of equal width, for a terminal or a log."""
    rows = [["", "", *(each.name for each in columns)]]
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
    head = "".join(f"<th scope=col>{escape(each.name)}</th>" for each in columns)
    body = []
    for task, results in lines(columns):
        best = max(each.mean for each in results if each is not None)
        is_best = (each is not None and each.mean == best and len(results) > 1 for each in results)
        cells = (f"<td{' class=best' * top}>{cell(each)}</td>" for each, top in zip(results, is_best, strict=True))
        body.append(f"<tr><th scope=row>{task}</th><td class=unit>{unit(task)}</td>{''.join(cells)}</tr>")
    return f"<table><thead><tr><th></th><th></th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
