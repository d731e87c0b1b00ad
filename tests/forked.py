"""Python in a process of its own that need not import torch first: forked from one that has, and that does nothing else.

For tests whose point is another process, not how Python begins; to import everything takes seconds each time.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from multiprocessing import reduction
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
# torch's compiler, which every optimiser of torch imports, takes as long as all the rest.
CONTEXT.set_forkserver_preload(["rankshot.cli.gallery", "rankshot.cli.search", "rankshot.cli.train", "torch._dynamo"])
COMMAND = "import sys; from rankshot.cli.main import main; sys.exit(main())"  # as `python -m rankshot ARGUMENTS`


class Started:
    """As `python -c CODE ARGUMENTS`; what it prints goes to files, or to a terminal."""

    def __init__(self, code, *arguments, terminal=None, environment=None):
        self.folder = tempfile.TemporaryDirectory(prefix="rankshot-forked-")
        self.files = [Path(self.folder.name) / name for name in ("out", "err")]
        opened = [os.open(each, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for each in self.files]
        streams = [_Stream(each) for each in (opened if terminal is None else [terminal] * 2)]
        environment = dict(os.environ if environment is None else environment)
        given = [code, [os.fspath(each) if isinstance(each, os.PathLike) else str(each) for each in arguments]]
        self.process = CONTEXT.Process(target=_run, args=(*given, streams, environment, os.getcwd()))
        self.process.start()
        for each in opened:
            os.close(each)

    def printed(self):
        """So far."""
        return os.fsdecode(self.files[0].read_bytes())

    def kill(self):
        self.process.kill()

    def ended(self):
        """As subprocess tells it; waits for it."""
        self.process.join(60)
        assert self.process.exitcode is not None, "it hangs"
        out, err = (os.fsdecode(each.read_bytes()) for each in self.files)
        self.folder.cleanup()
        return subprocess.CompletedProcess("forked", self.process.exitcode, out, err)


def python(code, *arguments):
    return Started(code, *arguments).ended()


class _Stream:
    """The number of an open file, which is another one in the process that it is passed on to."""

    def __init__(self, number):
        self.number = number

    def __reduce__(self):
        return _number, (reduction.DupFd(self.number),)


def _number(passed):
    return passed.detach()


def _run(code, arguments, streams, environment, folder):
    """The child; whatever escapes is told and becomes the exit code as it would in any process."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    # As Python itself opens them: those that were there know of a file that can be gone back in, as a terminal cannot.
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = ["-c", *arguments]
    exec(compile(code, "-c", "exec"), {"__name__": "__main__"})
