"""One registry: names, typed settings with defaults, and definitions that are run once more."""

import pytest

from rankshot.registry import REGISTRIES, Choice, Registry

CELL = """
@registry.register("mine")
class Mine:
    '''Of a notebook.'''

    def __init__(self, width: int = {width}) -> None: ...
"""


@pytest.fixture
def registry():
    made = Registry("thing")
    yield made
    REGISTRIES.remove(made)


def run_cell(registry, source, number, module="__main__"):
    """As Jupyter does: another file name for every other text."""
    exec(compile(source, f"<cell {number}>", "exec"), {"registry": registry, "__name__": module})


def test_a_cell_of_a_notebook_can_be_run_again(registry):
    run_cell(registry, CELL.format(width=4), 1)
    run_cell(registry, CELL.format(width=8), 2)
    assert registry.choose("mine") == Choice("mine", {"width": 8})
    with pytest.raises(ValueError, match="there is a thing 'mine' already, in <cell 2>"):
        run_cell(registry, CELL.format(width=4).replace("Mine", "Other"), 3)


def test_another_file_cannot_take_a_name(registry):
    run_cell(registry, CELL.format(width=4), 1, "one")
    with pytest.raises(ValueError, match="there is a thing 'mine' already, in <cell 1>"):
        run_cell(registry, CELL.format(width=8), 2, "other")
    assert registry.choose("mine", {"width": 5}).settings == {"width": 5}


def test_settings_are_checked(registry):
    run_cell(registry, CELL.format(width=4), 1)
    with pytest.raises(ValueError, match="thing mine: width must be a whole number, got 'x'"):
        registry.choose("mine", {"width": "x"})
    with pytest.raises(ValueError, match=r"thing 'mine' has no setting 'widht'.*did you mean 'width'"):
        registry.choose("mine", {"widht": 3})
    with pytest.raises(ValueError, match="unknown thing 'mime': did you mean 'mine'"):
        registry["mime"]
