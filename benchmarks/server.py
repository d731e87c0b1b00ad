"""A real Milvus server on this machine: `with served(folder) as server`. It is Milvus standalone, of the package `milvus`.

One process holds all parts of Milvus: etcd and the log (RocksMQ) are built in, and files lie in the folder. It is no
cluster, and it is not milvus-lite, the library that keeps a gallery in a file. It ends with the process that started it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .places import ROOT


@dataclass
class Server:
    """One that is running.

    uri      where it listens
    pid      of Milvus itself
    process  which has started it, and stops it when its input ends
    """

    uri: str
    pid: int
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return int(self.uri.rpartition(":")[2])

    def stop(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def kill(self) -> None:
        """As by `kill -9`."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()


class NoServer(RuntimeError):
    """The package is not here, or what it brings does not run."""


def start(folder: Path, port: int = 0) -> Server:
    """On what lies in the folder; `port` 0 is any that is free."""
    command = [sys.executable, "-m", "benchmarks.server", str(folder.absolute()), str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    uri, _, pid = process.stdout.readline().strip().partition(" ")
    if not pid:
        process.communicate()  # its input ends here, and so it does too
        raise NoServer("a Milvus server does not run here: `pip install milvus`, on Linux")
    return Server(uri, int(pid), process)


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    server = start(folder)
    try:
        yield server
    finally:
        server.stop()


def serve(folder: str, port: int) -> None:
    """Until standard input ends."""
    from milvus import MilvusServer, MilvusServerConfig

    class Config(MilvusServerConfig):  # type: ignore[misc]
        """Takes a port also where connections of a server that was killed still linger, as servers do."""

        def try_bind_port(self, port: int) -> socket.socket | None:
            found = socket.socket()
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                found.close()
                return None
            return found

    server = MilvusServer(Config(), wait_for_started=True)
    server.set_base_dir(folder)
    server.listen_port = port or free_port()
    server.start()
    print(f"http://127.0.0.1:{server.listen_port} {server.server_proc.pid}", flush=True)
    sys.stdin.read()
    server.stop()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
