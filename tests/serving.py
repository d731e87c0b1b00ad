"""A server in this process, for tests to ask."""

import threading
from contextlib import contextmanager

import httpx

from rankshot.serve.server import Place, Server


@contextmanager
def running(embedder, workspace, place=None, limits=None, **more):
    """The server itself, while it answers."""
    server = Server(embedder, workspace, place or Place(port=0), limits, **more)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@contextmanager
def asked(*of_server):
    """A client of a server that is `running` meanwhile, with `.server`."""
    with running(*of_server) as server, httpx.Client(base_url=server.address, timeout=30) as client:
        client.server = server
        yield client
