"""Standard streams as shells leave them: closed, full, without a reader, in any encoding."""

import os
import shlex
import subprocess
import sys

import pytest

PYTHON = shlex.quote(sys.executable)


def shell(command, **variables):
    """`rankshot` in a shell: exit code of the whole, standard output, standard error."""
    command = f'set -o pipefail; rankshot() {{ {PYTHON} -m rankshot "$@"; }}; {command}'
    environment = {**os.environ, "PYTHONUNBUFFERED": "", **variables}
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment, check=False)
    err = done.stderr.decode()
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    return done.returncode, done.stdout.decode(), err


@pytest.mark.parametrize(
    ("command", "codes", "told"),
    [
        ("rankshot --help | true", (141, 0), ""),
        ("export PYTHONUNBUFFERED=1; rankshot --help | true", (141, 0), ""),
        ("rankshot --help | head -1", (141, 0), ""),
        ("rankshot data --help | true", (141,), ""),
        ("rankshot --help >&-", (0,), ""),
        ("rankshot data --help >&-", (0,), ""),
        ("rankshot --help >&- 2>&- <&-", (0,), ""),
        ("rankshot --help >/dev/full", (1,), "rankshot: No space left on device\n"),
        ("rankshot nothing 2>&-", (1,), ""),
        ("rankshot nothing 2>&1 | true", (1,), ""),
    ],
)
def test_output_that_nobody_takes(command, codes, told):
    code, _, err = shell(command)
    assert code in codes
    assert err == told


def test_a_stream_that_was_closed_is_not_taken_for_a_file(tmp_path):
    """The next file to be opened has its number, and would be sent what is printed."""
    path = shlex.quote(str(tmp_path / "file"))
    code = f"from rankshot.cli.main import main; main(['--version']); file = open({path!r}, 'w'); print(file.fileno())"
    done = subprocess.run(["bash", "-c", f"{PYTHON} -c {shlex.quote(code)} >&- 2>{path}.err"], check=False)
    assert done.returncode == 0
    assert (tmp_path / "file").read_text() == (tmp_path / "file.err").read_text() == ""


def test_a_word_that_the_encoding_does_not_have():
    for variables in ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}):
        code, _, err = shell("rankshot $'caf\\xc3\\xa9\\e[31m\\xff'", **variables)
        assert code == 1
        assert err.isascii()
        assert "caf" in err
        assert "\x1b" not in err


def test_what_others_print_is_escaped():
    from rankshot.cli import streams

    class Terminal:
        def __init__(self):
            self.told = ""

        def isatty(self):
            return True

        def write(self, text):
            self.told += text
            return len(text)

    for colours, expected in ((True, "\x1b[31mred\x1b[0m \\x1b[2J\\r\n"), (False, "\\x1b[31mred\\x1b[0m \\x1b[2J\\r\n")):
        terminal = Terminal()
        stream = streams._Escaped(terminal, colours)
        assert stream.isatty() == colours
        stream.write("\x1b[31mred\x1b[0m \x1b[2J\r\n")
        assert terminal.told == expected
