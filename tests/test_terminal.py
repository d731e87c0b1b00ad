"""Counting for a log."""

from rankshot.terminal import counting


def test_plain_lines(capsys):
    with counting("mine", lines=4) as told:
        for done in range(1, 1001):
            told(done, 1000)
    assert capsys.readouterr().out.splitlines() == [f"mine  {done}/1000" for done in (250, 500, 750, 1000)]
