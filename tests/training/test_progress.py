"""What a person sees while training: a live bar on a colour terminal, plain lines anywhere else. On real terminals."""

import os
import pty
import re

import pytest
import torch
from forked import COMMAND, Started

from rankshot.fewshot import Classification, Result, Retrieval
from rankshot.training.progress import PlainProgress, validation_line

SETTINGS = (
    "--filters 4 --batch-classes 4 --batch-size 16 --updates 30 --log-every 1 --validation-episodes 5 --validate-every 15"
)
RESULTS = [
    Result(Classification(5, 1), torch.tensor([0.5, 0.6])),
    Result(Retrieval(20), torch.tensor([0.25, 0.25])),
]


def test_a_name_is_no_markup():
    code = (
        "from rankshot.terminal import counting\n"
        "from rankshot.training.progress import BarProgress\n"
        "with counting('my [bold]photos[/x]') as told: told(1, 2)\n"
        "bar = BarProgress('their [red]letters[/y] map-dlm', 3, 0)\n"
        "with bar.bar: bar.updated(1, 0.5, 0.5, 1.0)\n"
    )
    told = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", on_a_terminal(code))
    assert "my [bold]photos[/x]" in told
    assert "their [red]letters[/y]" in told


def on_a_terminal(code, *arguments, **environment):
    """Everything that a process writes to a terminal of its own, 120 columns wide."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": "120", "LINES": "30", "TERM": "xterm-256color"}
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
    process = Started(code, *arguments, terminal=theirs, environment={**kept, **size, **environment})
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 65536):
            written += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.ended().returncode == 0, written.decode()
    return written.decode()


def test_a_colour_terminal_shows_a_live_bar(drawn, tmp_path):
    seen = on_a_terminal(COMMAND, "train", "--run", tmp_path / "run", *SETTINGS.split())
    assert "\x1b[" in seen
    assert "━" in seen
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert re.search(r"glyphs map-dlm.*30/30", plain)
    assert re.search(r"[0-9.]+/s +loss -?[0-9.]+ +batch mAP [0-9.]+", plain)
    assert "validation 15     5-way: 1-shot" in plain
    assert plain.count("30/30") >= 1
    assert "next: rankshot evaluate" in plain


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"CI": "true"}, {"TERM": "dumb"}], ids=str)
def test_without_colour_there_are_plain_lines(drawn, tmp_path, environment):
    seen = on_a_terminal(COMMAND, "train", "--run", tmp_path / "run", *SETTINGS.split(), **environment)
    assert "\x1b" not in seen
    assert "━" not in seen
    assert re.search(
        r"^glyphs map-dlm  30/30  loss +-?[0-9.]+  batch mAP +[0-9.]+  [0-9.]+ updates/s  0:00 left", seen, re.M
    )
    assert re.search(r"^glyphs map-dlm  validation 30     5-way: 1-shot", seen, re.M)


def test_plain_lines_are_few(capsys):
    progress = PlainProgress("name", total=10_000, done=0)
    for update in range(1, 10_001):
        progress.updated(update, loss=0.5, batch_map=0.25, per_second=2.0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    assert lines[0] == "name    500/10000  loss   0.5000  batch mAP  25.0  2.0 updates/s  1:19:10 left"
    assert lines[-1].startswith("name  10000/10000")


def test_validation_line():
    both = [*RESULTS, Result(Classification(20, 5), torch.tensor([0.4, 0.4]))]
    assert validation_line(7, both, True) == "validation 7      5-way: 1-shot 55.0  20-way: mAP 25.0, 5-shot 40.0  best"
    assert validation_line(7, RESULTS, False) == "validation 7      5-way: 1-shot 55.0  20-way: mAP 25.0"
