"""`make test` stays quick: what takes long by its nature is marked, today's tests and those to come."""

import inspect
import re
from types import SimpleNamespace

LONG_BY_NATURE = re.compile(r"\"torchrun\"|torch\.distributed\.run|nbclient|nbconvert|jupyter|webdriver|\"campaigns\.")


def not_marked(items):
    """Names of tests that start something of the kind and are not marked."""
    functions = {item.function: item.nodeid for item in items if item.get_closest_marker("slow") is None}
    return [name for function, name in functions.items() if LONG_BY_NATURE.search(inspect.getsource(function))]


def test_what_takes_long_by_its_nature_is_marked(request):
    assert not_marked(request.session.items) == []


def starts_several():
    return ["torchrun", "--nproc-per-node", "2"]


def test_who_is_not_marked_is_found():
    for mark, expected in ((None, ["it"]), ("slow", [])):
        item = SimpleNamespace(nodeid="it", function=starts_several, get_closest_marker=lambda _, mark=mark: mark)
        assert not_marked([item]) == expected
