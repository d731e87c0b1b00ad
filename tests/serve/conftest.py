"""A server for tests to ask: real, on a port of its own."""

from contextlib import contextmanager

import browser as real_browser
import httpx
import pytest
from glyph_pictures import embedder_of

from serving import running


@pytest.fixture(scope="session")
def handwriting():
    return embedder_of("conv4-omniglot")


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("selenium")
    started = real_browser.start()
    yield started
    started.quit()


@pytest.fixture
def serve(handwriting, tmp_path):
    """serve(place, limits) -> a context with a client of a new server over the same workspace, and `.server`."""

    @contextmanager
    def ask(place=None, limits=None):
        with (
            running(handwriting, tmp_path / "workspace", place, limits) as server,
            httpx.Client(base_url=server.address, timeout=30) as client,
        ):
            client.server = server
            yield client

    return ask


@pytest.fixture
def client(serve):
    with serve() as client:
        yield client
