"""Tasks down, networks across: the same table as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rankshot.fewshot import Result, Retrieval

from .measured import Measured


def cell(result: Result) -> str:
    return f"{100 * result.mean:.1f} ± {100 * result.interval:.1f}"


def unit(result: Result) -> str:
    return "mAP, %" if isinstance(result.task, Retrieval) else "accuracy, %"


def text_table(columns: Sequence[Measured]) -> str:
    """Lines of equal width, for a terminal or a log."""
    rows = [["", "", *(each.name for each in columns)]]
    for results in zip(*(each.results for each in columns), strict=True):
        rows.append([str(results[0].task), unit(results[0]), *map(cell, results)])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join([*_padded(row[:2], widths[:2], "<"), *_padded(row[2:], widths[2:], ">")]) for row in rows]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def _padded(texts: Sequence[str], widths: Sequence[int], side: str) -> list[str]:
    return [f"{text:{side}{width}}" for text, width in zip(texts, widths, strict=True)]


def html_table(columns: Sequence[Measured]) -> str:
    """The best of each row is bold."""
    head = "".join(f"<th scope=col>{escape(each.name)}</th>" for each in columns)
    body = []
    for results in zip(*(each.results for each in columns), strict=True):
        best = max(each.mean for each in results)
        cells = (f"<td{' class=best' * (each.mean == best and len(results) > 1)}>{cell(each)}</td>" for each in results)
        body.append(f"<tr><th scope=row>{results[0].task}</th><td class=unit>{unit(results[0])}</td>{''.join(cells)}</tr>")
    return f"<table><thead><tr><th></th><th></th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
