"""One registry: names, typed settings with defaults, and definitions that are run once more."""

import functools
import subprocess
import sys

import pytest

from rankshot import data, gallery, losses, methods, models, ranking
from rankshot.preprocess import Preprocess
from rankshot.registry import REGISTRIES, Choice, Registry, load_files

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


def something(number: int = 0):
    """Something to register."""


def run_cell(registry, source, number, module="__main__"):
    """As Jupyter does: another file name for every other text."""
    exec(compile(source, f"<cell {number}>", "exec"), {"registry": registry, "__name__": module})


def test_what_is_not_listed_is_found_by_its_name(registry):
    registry.register("shown")(something)
    registry.register("kept-apart", listed=False)(something)
    assert list(registry) == ["shown"]
    assert "kept-apart" in registry
    assert registry.choose("kept-apart").settings == {"number": 0}
    with pytest.raises(ValueError, match=r"unknown thing 'else': there is 'shown'\. "):
        registry["else"]


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


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("", ValueError, "the name of a thing is of letters and digits, and of - _ . [+] @ after the first, .*, got ''"),
        ("a b/c=", ValueError, "the name of a thing is of letters and digits.*, got 'a b/c='"),
        ("../up", ValueError, "the name of a thing"),
        ("--load", ValueError, "the name of a thing"),
        ("a:b", ValueError, "the name of a thing"),
        ("x" * 101, ValueError, "at most 100 of them"),
        (5, TypeError, "a thing is registered by a name, which is a text: got 5"),
    ],
)
def test_names(registry, name, kind, message):
    with pytest.raises(kind, match=message):
        registry.register(name)
    for good in ("map-dlm", "baseline++", "größe", "v1.2_x", "recall@1"):
        registry.register(good)(Preprocess)
    assert "größe" in registry


def test_what_is_registered(registry):
    with pytest.raises(TypeError, match=r'a thing is registered by a name, which is a text: write @register\("Mine"\)'):

        @registry.register
        class Mine: ...

    with pytest.raises(TypeError, match="a thing is a class or a function, and 'mine' is registered as a partial: write a"):
        registry.register("mine")(functools.partial(int, base=2))
    assert "mine" not in registry
    registry.register("mine")(functools.cache(something))


def test_what_else_is_told_of_a_part():
    made = Registry("thing", about={"preprocess": Preprocess, "rate": float})
    REGISTRIES.remove(made)
    made.register("good", preprocess=Preprocess(3, 32, 32), rate=1, summary="good")(something)
    with pytest.raises(TypeError, match=r"preprocess of the thing 'bad' must be a Preprocess, got \(3, 32, 32\)"):
        made.register("bad", preprocess=(3, 32, 32))
    with pytest.raises(TypeError, match="rate of the thing 'bad' must be a number, got 'fast'"):
        made.register("bad", rate="fast")
    with pytest.raises(
        TypeError, match="a thing is not registered with 'rat': there is 'fixed', 'usual', 'summary', 'preprocess', "
    ):
        made.register("bad", rat=1)
    with pytest.raises(TypeError, match="run_settings of the method 'bad' must be a dictionary, got 3"):
        methods.register("bad", run_settings=3)


@pytest.mark.parametrize(
    ("register", "name", "message"),
    [
        (losses.register, "maml", "there is a method 'maml' already, in .*maml.py"),
        (methods.register, "nca", "there is a method 'nca' already, in .*nca_loss.py"),
        (models.register, "maml", "there is a network 'maml' already, in .*maml.py"),
        (ranking.register, "ap", "there is a metric 'ap' in rankshot: call yours otherwise"),
        (ranking.register, "precision@3", "there is a metric 'precision@3' in rankshot"),
        (gallery.register, "local", "there is a gallery store 'local' in rankshot"),
        (gallery.register, "faiss", "there is a gallery store 'faiss' in rankshot"),
        (gallery.register, "milvus", "there is a gallery store 'milvus' in rankshot"),
        (gallery.register, "https", "there is a gallery store 'https' in rankshot"),
        (gallery.register, "a:b", "the name of a gallery store"),
        (data.register, "a/b", "the name of a data set"),
    ],
)
def test_names_that_are_taken(register, name, message):
    with pytest.raises(ValueError, match=message):

        @register(name)
        def mine(embeddings, labels): ...


def test_a_name_is_taken_before_its_home_is_imported():
    code = "from rankshot import losses\nlosses.register('maml')(lambda embeddings, labels: 0)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ValueError: there is a method 'maml' already" in done.stderr


def test_settings_of_several_values(registry):
    @registry.register("sized")
    def sized(size: tuple[int, float] = (3, 0.5), widths: tuple[int, ...] = (4,), other: object = None): ...

    assert registry.choose("sized", {"size": [1, 2], "widths": [5, 6]}).settings == {"size": (1, 2.0), "widths": (5, 6)}
    with pytest.raises(ValueError, match="size must be a list of 2 values, got"):
        registry.choose("sized", {"size": [1, 2, 3]})
    for hint in (list[int], list, list[int] | None):
        with pytest.raises(
            ValueError, match=r"the setting 'widths' of .*listed is a list: write widths: tuple\[int, \.\.\.\] = …"
        ):

            @registry.register("listed")
            def listed(widths: hint = None): ...


def test_a_file_of_one_s_own_is_a_module_that_can_be_found(tmp_path):
    """As torch.compile looks for the module of a function."""
    file = tmp_path / "own.py"
    code = "@losses.register('own-to-find')\ndef own(embeddings, labels):\n    return SCALE\n"
    file.write_text(f"from rankshot import losses\nSCALE = 2\n\n{code}")
    load_files([file])
    made = losses.registry.LOSSES["own-to-find"].make
    assert vars(sys.modules[made.__module__]) is made.__globals__
    assert not list(tmp_path.glob("__pycache__"))
