"""Parts by name: networks, losses, methods, data sets, metrics, gallery stores. Each has typed settings of its own.

A part is a class or a function. Its settings are those of its arguments that have a default and a type that a file can
hold: they are named, typed and given their defaults in one place, the part's own signature. What they mean is told in the
section `Args:` of its docstring.
"""

from __future__ import annotations

import difflib
import inspect
import re
import runpy
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from .schema import checked

Anything = TypeVar("Anything", bound=Callable[..., Any])
SIMPLE = (int, float, str, bool, types.NoneType)
REGISTRIES: list[Registry] = []


@dataclass(frozen=True)
class Choice:
    """A part by its name, with all of its settings.

    is_object   it was given from Python as an object: it has a name to be told by, and cannot be made from it
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_object: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **self.settings, **({"is_object": True} if self.is_object else {})}


@dataclass(frozen=True)
class Part:
    """What a registry knows of a part.

    make   the class or function
    file   where it was registered
    fixed  arguments that are the same whenever it is made under this name
    about  what else its kind of part wants to know, such as presets
    """

    name: str
    make: Callable[..., Any]
    file: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, Any]:
        """Of its settings, by name."""
        return {name: hint for name, (hint, _) in _settings(self.make).items() if name not in self.fixed}

    @property
    def defaults(self) -> dict[str, Any]:
        return {name: default for name, (_, default) in _settings(self.make).items() if name not in self.fixed}

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return self.make(*arguments, **{**self.fixed, **settings})

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return str(self.about.get("summary") or (inspect.getdoc(self.make) or "").partition("\n")[0])


class Registry:
    """The parts of one kind.

    kind   what they are called in errors, such as "network"
    home   a package that registers some when it is imported, which is put off until a name is asked for
    also   another registry, whose parts can be chosen here too
    """

    def __init__(self, kind: str, home: str | None = None, also: Registry | None = None) -> None:
        self.kind, self._home, self._also = kind, home, also
        self._parts: dict[str, Part] = {}
        REGISTRIES.append(self)

    def register(
        self, name: str, *, fixed: Mapping[str, Any] | None = None, **about: Any
    ) -> Callable[[Anything], Anything]:
        """A decorator: the class or function is known by this name then. A file may be run again."""
        file = sys._getframe(1).f_code.co_filename

        def add(make: Anything) -> Anything:
            part = Part(name, make, file, fixed or {}, about)
            before = self._known().get(name)
            if before is not None and not _replaces(make, file, before):
                raise ValueError(f"there is a {self.kind} {name!r} already, in {before.file}")
            _settings(make)  # complains now about a setting without a type
            self._parts[name] = part
            return make

        return add

    def __getitem__(self, name: str) -> Part:
        if name not in self:
            known = self._known()
            like = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {like[0]!r}?" if like else f"there is {', '.join(map(repr, known))}."
            raise ValueError(f"unknown {self.kind} {name!r}: {hint} One of your own comes with --load FILE")
        return self._known()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known() or (self._home is not None and self._import_home() and name in self._known())

    def __iter__(self) -> Iterator[str]:
        self._import_home()
        return iter(self._known())

    def items(self) -> Iterator[tuple[str, Part]]:
        return ((name, self[name]) for name in self)

    def _known(self) -> dict[str, Part]:
        return {**(self._also.snapshot() if self._also is not None else {}), **self._parts}

    def choose(self, name: str, settings: Mapping[str, Any] | None = None) -> Choice:
        """A part with these settings, and its defaults for the others."""
        part = self[name]
        hints = part.types
        for setting in settings or {}:
            if setting not in hints:
                raise ValueError(unknown_setting(setting, part, self))
        values = {
            setting: checked(value, hints[setting], f"{self.kind} {name}", setting)
            for setting, value in (settings or {}).items()
        }
        return Choice(name, {**part.defaults, **values})

    def make(self, choice: Choice, *arguments: Any) -> Any:
        return self[choice.name](*arguments, **choice.settings)

    def snapshot(self) -> dict[str, Part]:
        return dict(self._parts)

    def restore(self, parts: Mapping[str, Part]) -> None:
        self._parts = dict(parts)

    def _import_home(self) -> bool:
        if self._home is not None:
            home, self._home = self._home, None
            import_module(home)
        return True


def _is_same(file: str, other: str) -> bool:
    """Of one file, however it is spelt."""
    return file == other or Path(file).resolve() == Path(other).resolve()


def _replaces(make: Callable[..., Any], file: str, before: Part) -> bool:
    """Whether it is the same definition once more: its file is run again, or its cell of a notebook."""
    in_notebook = before.make.__module__ == make.__module__ == "__main__"
    return before.make.__qualname__ == make.__qualname__ and (in_notebook or _is_same(before.file, file))


def unknown_setting(name: str, part: Part, registry: Registry) -> str:
    """The sentence about a setting that a part has not: whose it is, or what was meant."""
    known = list(part.defaults)
    owners = {
        other: None for known_registry in REGISTRIES for other, owner in known_registry.items() if name in owner.types
    }
    if owners:
        return f"{registry.kind} {part.name!r} has no setting {name!r}: that is a setting of {', '.join(map(repr, owners))}"
    like = difflib.get_close_matches(name, known, n=1)
    suggestion = f"did you mean {like[0]!r}?" if like else f"there is {', '.join(map(repr, known)) or 'none'}"
    return f"{registry.kind} {part.name!r} has no setting {name!r}: {suggestion}"


@cache
def _settings(make: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """name -> type and default."""
    called = make.__init__ if inspect.isclass(make) else make
    hints = typing.get_type_hints(called, include_extras=True)
    settings = {}
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            continue
        if name not in hints:
            raise ValueError(f"the setting {name!r} of {make.__qualname__} has no type: write {name}: float = …, say")
        hint = simple(hints[name])
        if hint is not None:
            settings[name] = hint, parameter.default
    return settings


def simple(hint: Any) -> Any:
    """The part of a type hint that a file and a command line can hold; None: there is none.

    >>> simple(int | list[object])
    <class 'int'>
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint in SIMPLE or origin is Literal:
        return hint
    if origin is Annotated:
        return hint if simple(inside[0]) is not None else None
    if origin in (types.UnionType, typing.Union):
        kinds = [kind for kind in inside if simple(kind) is not None]
        if not any(kind is not types.NoneType for kind in kinds):
            return None
        return typing.Union[tuple(kinds)]  # noqa: UP007  # of as many as there are
    if origin is tuple and inside[1:] == (...,):
        return hint if simple(inside[0]) is not None else None
    return None


def help_of(make: Callable[..., Any]) -> dict[str, str]:
    """What each argument means, by the section `Args:` of the docstring of a class, its constructor or a function."""
    texts = [inspect.getdoc(make) or "", (inspect.getdoc(make.__init__) or "") if inspect.isclass(make) else ""]
    descriptions: dict[str, str] = {}
    for text in texts:
        section = re.search(r"^Args:\n((?:[ ]{4}.*\n?|\n)*)", text, re.MULTILINE)
        for name, description in re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section[1] if section else "", re.MULTILINE):
            descriptions[name] = " ".join(description.split())
    return descriptions


def load_files(files: Iterable[str | Path]) -> None:
    """Run Python files of the user's own, which the user names and answers for; each must register something."""
    for file in map(Path, files):
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}" if not file.exists() else f"{file} is no file")
        beside = str(file.resolve().parent)
        sys.path.insert(0, beside)  # as when a file is run by Python itself
        try:
            runpy.run_path(str(file))
        except SystemExit as ended:
            raise ValueError(
                f"{file} ends Python (exit code {ended.code}): what it does when it is run goes below "
                'if __name__ == "__main__"'
            ) from None
        except Exception as error:  # whatever it is, it is in the user's file: its own traceback tells where
            failed = ValueError(f"{file} cannot be run: {type(error).__name__}: {error}")
            failed.add_note("".join(traceback.format_exception(error)).rstrip())
            raise failed from None
        finally:
            sys.path.remove(beside)
        if not any(_is_same(part.file, str(file)) for registry in REGISTRIES for part in registry.snapshot().values()):
            raise ValueError(
                f"{file} registers nothing: decorate a class or a function with register of rankshot.models, .losses, "
                ".methods, .data, .ranking or .gallery"
            )
