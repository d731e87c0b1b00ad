"""A server for tests to ask: real, on a port of its own."""

import browser as real_browser
import pytest
from glyph_pictures import embedder_of

from serving import asked


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
    return lambda place=None, limits=None: asked(handwriting, tmp_path / "workspace", place, limits)


@pytest.fixture
def client(serve):
    with serve() as client:
        yield client


@pytest.fixture(scope="module")
def untouched(handwriting, tmp_path_factory):
    """A client of one server for all requests that must change nothing: to start and stop one for each takes its time."""
    with asked(handwriting, tmp_path_factory.mktemp("untouched") / "workspace") as client:
        yield client
