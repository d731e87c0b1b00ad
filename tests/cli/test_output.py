"""Answers: exact where a program reads them, harmless where a person does."""

import csv
import io
import json
import os
from pathlib import Path

import pytest

from rankshot.cli.output import answers_to

NASTY = os.fsdecode(b'caf\xc3\xa9 \x1b[31m \xff, "x"\n')
ROWS = [{"image": NASTY, "label": "\ud800 \u202e", "share": 0.5}]


def both(path):
    with answers_to(path) as to:
        to.csv(row.values() for row in ROWS)
        to.json(ROWS)


def test_a_file_has_names_as_they_are_on_the_disk(tmp_path):
    with answers_to(tmp_path / "out.csv") as to:
        to.csv(row.values() for row in ROWS)
    content = (tmp_path / "out.csv").read_bytes()
    assert b'"caf\xc3\xa9 \x1b[31m \xff, ""x""\n"' in content
    ((name, *_),) = csv.reader(io.StringIO(os.fsdecode(content.replace(b"\xed\xa0\x80", b"")), newline=""))
    assert name == NASTY
    with answers_to(tmp_path / "out.json") as to:
        to.json(ROWS)
    assert [json.loads(line) for line in (tmp_path / "out.json").read_text(encoding="utf-8").splitlines()] == ROWS
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.csv", "out.json"]


def test_what_is_there_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")

    def rows():
        yield ["a"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), answers_to(path) as to:
        to.csv(rows())
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]
    assert path.read_text() == "before"


def test_no_name_can_be_guessed_to_lead_elsewhere(tmp_path):
    """A link where an unfinished file might be, put there by somebody else."""
    (tmp_path / "precious").write_text("mine")
    for name in (".out.csv.partial", "out.csv.partial"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
    both(tmp_path / "out.csv")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "out.csv").is_symlink()


def everything_sent_to(terminal: int) -> bytes:
    """All that was written: one read may return less, as the kernel passes a terminal's text on in pieces."""
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # how Linux tells that the other end is closed and all of its text was read
            return b"".join(pieces)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def test_a_terminal_is_sent_text_alone():
    ours, theirs = os.openpty()
    both(Path(os.ttyname(theirs)))
    os.close(theirs)
    text = everything_sent_to(ours).decode()
    os.close(ours)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "caf\u00e9 \\x1b[31m \\xff" in text
    assert json.loads(text.splitlines()[-1]) == ROWS[0]


def test_standard_output(capsysbinary):
    both(None)
    out = capsysbinary.readouterr().out
    assert b"\xff" in out
    assert json.loads(out.splitlines()[-1]) == ROWS[0]
