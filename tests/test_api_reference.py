"""`help()` of every public name teaches: what it does, every argument, and an example that runs as it is written.

Public is what a package of rankshot lists in `__all__`, and the public methods of these classes. Nothing is listed by hand:
a name that is added to an `__all__` is held to the same. Docstrings follow Google's convention.
"""

import ast
import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import textwrap
from functools import cached_property
from pathlib import Path
from types import ModuleType

import pytest
from docstrings import examples_of, run

import rankshot

NOT_YET: set[str] = set()  # whose docstrings are still to be written; better none
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Note", "Examples")  # in this order
OTHER_SPELLINGS = re.compile(
    r"(arg|args|arguments?|param|params|parameters?|inputs?|returns?|outputs?|yields?|raise|raises|except|exceptions|throws"
    r"|attributes?|fields?|usage|examples?|see also|shapes?)\s*:?",
    re.IGNORECASE,
)


def packages():
    """Those of rankshot, and the modules that they list."""
    found = pkgutil.walk_packages(rankshot.__path__, "rankshot.")
    for package in (rankshot, *(importlib.import_module(each.name) for each in found if each.ispkg)):
        yield package
        listed = (getattr(package, name) for name in getattr(package, "__all__", ()))
        yield from (each for each in listed if isinstance(each, ModuleType) and not hasattr(each, "__path__"))


def public():
    """Each public object once, by the shortest of its names: {name: (object, the package that lists it)}."""
    names, seen = {}, set()
    for package in packages():
        for short in getattr(package, "__all__", ()):
            thing = getattr(package, short)
            identity = (
                (thing.__module__, thing.__qualname__, id(getattr(thing, "__self__", None))) if described(thing) else 0
            )
            if not identity or identity not in seen:
                names[f"{package.__name__}.{short}"] = thing, package
                seen.add(identity)
    return names


def described(thing):
    """Whether it can have a docstring of its own, and is no module."""
    return inspect.isclass(thing) or inspect.isroutine(thing)


PUBLIC = public()
DESCRIBED = {name: thing for name, (thing, _) in PUBLIC.items() if described(thing)}
# Whose examples are run here, by where they are defined: `register` of every registry is one function.
RUN_HERE = {
    f"{DESCRIBED[name].__module__}.{DESCRIBED[name].__qualname__}": name for name in sorted(DESCRIBED.keys() - NOT_YET)
}


def faults(thing):
    """What `help()` of a function or class lacks, in words."""
    doc = own_docstring(thing)
    if not doc:
        yield "has no docstring of its own"
        return
    sections = sections_of(doc)
    yield from wrong_spellings(doc)
    in_order = sorted(sections, key=SECTIONS.index)
    if list(sections) != in_order:
        yield f"has its sections in the order {', '.join(sections)}: it is {', '.join(in_order)}"
    example = doctest.DocTestParser().get_examples(sections.get("Examples", ""))
    if not example:
        yield "has no >>> in a section `Examples:`"
    elif not any(each.want for each in example):
        yield "has an example that shows no result"
    told = {*entries(sections.get("Args", "")), *entries(sections.get("Attributes", ""))}
    for parameter in parameters(thing):
        if parameter not in told:
            yield f"does not tell what {parameter} is, in `Args:`"
    if not inspect.isclass(thing):
        if returns_something(thing) and not {"Returns", "Yields"} & sections.keys():
            yield "has no section `Returns:`"
        if raises(thing) and "Raises" not in sections:
            yield "has no section `Raises:`"
        return
    if any(raises(vars(thing).get(name)) for name in ("__init__", "__post_init__")) and "Raises" not in sections:
        yield "has no section `Raises:`"
    for name, method in public_methods(thing):
        method_doc = inspect.getdoc(method) if method.__doc__ else docstring_of_base(thing, name)
        if not method_doc:
            yield f"has a method {name} without a docstring"
        yield from (f"{name} {fault}" for fault in wrong_spellings(method_doc or ""))


def own_docstring(thing):
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    if doc and dataclasses.is_dataclass(thing) and doc.startswith(f"{thing.__name__}("):
        return ""  # dataclasses write one themselves
    return inspect.cleandoc(doc or "")


def sections_of(doc):
    """{title: what is indented below it}, in the order of the docstring."""
    found = re.findall(r"^(\w+):\n((?:[ ]{4}.*\n|\n)*)", doc + "\n", re.MULTILINE)
    return {title: textwrap.dedent(text) for title, text in found if title in SECTIONS}


def wrong_spellings(doc):
    for line in doc.splitlines():
        title = line.rstrip(":")
        if OTHER_SPELLINGS.fullmatch(line) and (title not in SECTIONS or not line.endswith(":")):
            yield f"has a section {line!r}: Google's are {', '.join(SECTIONS)}, with a colon"
        if re.match(r":(param|type|return|returns|rtype|raises)\b", line.strip()):
            yield f"has {line.strip()!r}, which is not Google's convention"


def entries(section):
    return [name.lstrip("*") for name in re.findall(r"^(\*{0,2}\w+)(?: \([^)]*\))?: \S", section, re.MULTILINE)]


def parameters(thing):
    """The public ones of a function or a constructor of ours."""
    if dataclasses.is_dataclass(thing):
        names = [field.name for field in dataclasses.fields(thing) if field.init]
    elif hasattr(thing, "_fields"):
        names = thing._fields
    elif inspect.isclass(thing) and not getattr(thing.__init__, "__module__", "").startswith("rankshot"):
        names = []
    else:
        names = inspect.signature(thing).parameters
    return [name for name in names if not name.startswith("_")]


def returns_something(function):
    return inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty)


def raises(function):
    """Whether there is a `raise` in it, not counting functions within."""
    if not inspect.isroutine(function) or function.__module__ == "typing" or not in_a_file(function):
        return False  # dataclasses and protocols write a constructor themselves
    nodes = list(ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0].body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Raise):
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return False


def in_a_file(function):
    return Path(inspect.unwrap(function).__code__.co_filename).exists()


def public_methods(kind):
    """Those that the class, or one of ours that it is derived from, defines; properties too."""
    methods = {}
    for base in kind.__mro__:
        if base.__module__.startswith("rankshot"):
            for name, value in vars(base).items():
                value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                is_method = inspect.isfunction(value) or isinstance(value, property | cached_property)
                if not name.startswith("_") and is_method:  # scikit-learn adds some that are no functions
                    methods.setdefault(name, value)
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    return [(name, method) for name, method in methods.items() if name not in fields]  # a field's default is no method


def docstring_of_base(kind, name):
    """Of the method that is overridden, where that is one of ours."""
    ours = (base for base in kind.__mro__ if base.__module__.startswith("rankshot"))
    return next((doc for base in ours if (doc := getattr(vars(base).get(name), "__doc__", None))), None)


def is_told(package, name):
    """Whether a text stands below the assignment of a constant, wherever the package has it from."""
    path = Path(package.__file__)
    body = ast.parse(path.read_text()).body
    for place, node in enumerate(body):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(node, ast.Assign | ast.AnnAssign) and any(getattr(each, "id", None) == name for each in targets):
            after = body[place + 1] if place + 1 < len(body) else None
            return isinstance(after, ast.Expr) and isinstance(getattr(after.value, "value", None), str)
        if isinstance(node, ast.ImportFrom) and name in [each.name for each in node.names]:
            return is_told(importlib.import_module("." * node.level + (node.module or ""), package.__package__), name)
    return False


def test_every_public_name_teaches():
    found = {name: list(faults(thing)) for name, thing in DESCRIBED.items() if name not in NOT_YET}
    lines = [f"{name} {fault}" for name, all_faults in found.items() for fault in all_faults]
    assert not lines, "\n" + "\n".join(lines)


def test_modules_and_constants_are_told():
    """A constant by a text below its assignment, as documentation tools read it."""
    others = {name: value for name, value in PUBLIC.items() if name not in DESCRIBED}
    untold = [
        name
        for name, (value, package) in others.items()
        if not (value.__doc__ if isinstance(value, ModuleType) else is_told(package, name.rpartition(".")[2]))
    ]
    untold += [package.__name__ for package in packages() if not package.__doc__]
    assert not untold


def test_what_is_not_yet_told_is_public_and_has_faults():
    assert [name for name in NOT_YET if not any(faults(DESCRIBED[name]))] == []


@pytest.mark.parametrize("name", sorted(RUN_HERE.values()))
def test_examples_run_as_a_reader_types_them(name, tmp_path, monkeypatch):
    """From nothing imported, in an empty folder."""
    run(examples_of(DESCRIBED[name], name=name, module=False, globs={}), tmp_path, monkeypatch)


def test_the_walk_finds_what_a_reader_would():
    assert {"rankshot.Gallery", "rankshot.losses.RankingLoss", "rankshot.ranking.average_precision"} <= DESCRIBED.keys()
    assert "rankshot.integrations.pml.adapt" in DESCRIBED, "of a module that a package lists"
    assert "rankshot.gallery.Gallery" not in DESCRIBED, "once is enough"
    assert dict(public_methods(rankshot.losses.TripletLoss)).keys() >= {"forward", "of_cosines"}


def bare(size: int, *, name: str = "x") -> int:
    raise ValueError(size, name)


def numpy_style(size: int) -> None:
    """Does it.

    Parameters:
        size: of it.
    """


def told(size: int, **more: object) -> int:
    """Does it.

    Args:
        size: of it.
        **more: of the same.

    Returns:
        As much.

    Raises:
        ValueError: always.

    Examples:
        >>> 1 + 1
        2
    """
    raise ValueError(size, more)


class Half:
    """Half of it is told.

    Examples:
        >>> 1 + 1

    Args:
        one: of two.
    """

    def __init__(self, one: int, two: int) -> None:
        self.one, self.two = one, two

    def method(self) -> None:
        pass


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (told, []),
        (bare, ["has no docstring of its own"]),
        (numpy_style, ["has a section 'Parameters:'", "has no >>>", "does not tell what size is"]),
        (Half, ["has its sections in the order Examples, Args", "has an example that shows no result", "what two is"]),
    ],
    ids=["told", "bare", "numpy", "half"],
)
def test_what_is_wrong_is_named(thing, expected, monkeypatch):
    if inspect.isclass(thing):
        monkeypatch.setattr(thing.__init__, "__module__", "rankshot")
    found = list(faults(thing))
    assert len(found) == len(expected)
    assert all(part in fault for part, fault in zip(expected, found, strict=True)), found


def test_a_method_without_a_docstring_is_named(monkeypatch):
    monkeypatch.setattr(Half, "__module__", "rankshot")
    assert "has a method method without a docstring" in list(faults(Half))
