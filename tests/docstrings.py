"""The examples of docstrings, and where they are run."""

import doctest


def examples_of(thing, **how):
    """Those of a module, class or function, and of all that is defined in it: one test a docstring."""
    return [test for test in doctest.DocTestFinder().find(thing, **how) if test.examples]


def run(tests, tmp_path, monkeypatch):
    """Each docstring in an empty folder of its own, since some write files."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for number, test in enumerate(tests):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        runner.run(test)
    assert runner.failures == 0
