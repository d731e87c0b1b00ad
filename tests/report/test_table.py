"""The same figures as text and as HTML."""

import torch

from rankshot.fewshot import Classification, Result, Retrieval
from rankshot.report.measured import Measured
from rankshot.report.table import html_table, text_table


def column(name, *means):
    tasks = [Classification(20, 1), Retrieval(5)]
    results = [Result(task, torch.tensor([mean - 0.01, mean + 0.01])) for task, mean in zip(tasks, means, strict=True)]
    return Measured(name, torch.nn.Identity(), results, None)


COLUMNS = [column("untrained", 0.2, 0.5), column("map-<dlm>", 0.8125, 0.4)]


def test_text():
    assert text_table(COLUMNS).splitlines() == [
        "                               untrained   map-<dlm>",
        "----------------------------------------------------",
        "1-shot 20-way    accuracy, %  20.0 ± 2.0  81.2 ± 2.0",
        "retrieval 5-way  mAP, %       50.0 ± 2.0  40.0 ± 2.0",
    ]


def test_what_a_network_cannot_answer():
    classifies = Measured("maml", torch.nn.Identity(), column("maml", 0.9, 0.1).results[:1], None)
    assert text_table([classifies, COLUMNS[0]]).splitlines() == [
        "                                    maml   untrained",
        "----------------------------------------------------",
        "1-shot 20-way    accuracy, %  90.0 ± 2.0  20.0 ± 2.0",
        "retrieval 5-way  mAP, %                –  50.0 ± 2.0",
    ]
    assert "<td>–</td><td class=best>50.0 ± 2.0</td>" in html_table([classifies, COLUMNS[0]])


def test_html():
    table = html_table(COLUMNS)
    assert "map-&lt;dlm&gt;" in table
    assert "<td>20.0 ± 2.0</td><td class=best>81.2 ± 2.0</td>" in table
    assert "<td class=best>50.0 ± 2.0</td><td>40.0 ± 2.0</td>" in table
    assert "best" not in html_table(COLUMNS[:1])
