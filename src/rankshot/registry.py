"""Parts by name: networks, losses, methods, data sets, metrics, gallery stores. Each has typed settings of its own.

A part is a class or a function. Its settings are those of its arguments that have a default and a type that a file can
hold: they are named, typed and given their defaults in one place, the part's own signature. What they mean is told in the
section `Args:` of its docstring.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import os
import re
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
PACKAGE = Path(__file__).parent
NAME = re.compile(r"\w[\w.+@-]*")  # what a shell and the name of a folder take as it is
LONGEST_NAME = 100  # characters


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
    usual  defaults under this name, where they are others than those of its signature
    about  what else its kind of part wants to know, such as presets
    """

    name: str
    make: Callable[..., Any]
    file: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    listed: bool = True

    @property
    def is_ours(self) -> bool:
        """Whether it comes with rankshot."""
        return Path(self.file).is_relative_to(PACKAGE)

    @property
    def types(self) -> dict[str, Any]:
        """Of its settings, by name."""
        return {name: hint for name, (hint, _) in _settings(self.make).items() if name not in self.fixed}

    @property
    def defaults(self) -> dict[str, Any]:
        own = {name: default for name, (_, default) in _settings(self.make).items() if name not in self.fixed}
        return {**own, **self.usual}

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return self.make(*arguments, **{**self.usual, **self.fixed, **settings})

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return str(self.about.get("summary") or (inspect.getdoc(self.make) or "").partition("\n")[0])


class Registry:
    """The parts of one kind, by name. Iterating gives the names that can be chosen; `registry[name]` gives the part.

    Args:
        kind: what the parts are called in errors, such as "network".
        home: a package that registers some when it is imported; it is imported when a name is first asked for.
        also: another registry, whose parts can be chosen here too.
        about: what `register` may be told of a part, and of which type that is. None: anything.
        taken: whether a name belongs to something that comes with rankshot and is not registered.
    """

    def __init__(
        self,
        kind: str,
        home: str | None = None,
        also: Registry | None = None,
        about: Mapping[str, type] | None = None,
        taken: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self.kind, self._home, self._also, self._about, self._taken = kind, home, also, about, taken
        self._parts: dict[str, Part] = {}
        self._shown_in: list[Registry] = []  # where its parts can be chosen too
        if also is not None:
            also._shown_in.append(self)
        REGISTRIES.append(self)

    def register(
        self,
        name: str,
        *,
        fixed: Mapping[str, Any] | None = None,
        usual: Mapping[str, Any] | None = None,
        listed: bool = True,
        **about: Any,
    ) -> Callable[[Anything], Anything]:
        """A decorator that makes a class or function known by a name, to the command line and to configs.

        Its arguments that have a default and a simple type are its settings; the section `Args:` of its docstring is
        their help. The file that registers a part may be run again.

        Args:
            name: of the part.
            fixed: arguments that are the same whenever it is made under this name, and no settings.
            usual: defaults of some settings under this name, where they are others than those of its signature.
            listed: whether it is among those that can be chosen; another one can still be found by its name.
            **about: what else this kind of part wants to know, such as `summary`.

        Returns:
            The decorator, which returns the class or function as it is.

        Raises:
            TypeError: if the name is not a text, or `about` has something that this kind of part does not know.
            ValueError: if the name is taken, or has characters other than letters, digits and - _ . + @.

        Examples:
            A loss of one's own, trained by `rankshot train --load FILE --method cosine-margin --margin 0.4`:

            >>> from rankshot import methods
            >>> from rankshot.losses import TripletLoss, register
            >>> @register("cosine-margin", summary="triplets, with another margin")
            ... class CosineMargin(TripletLoss):
            ...     def __init__(self, margin: float = 0.3) -> None:
            ...         super().__init__(margin)
            >>> "cosine-margin" in methods.METHODS
            True
            >>> methods.METHODS["cosine-margin"].defaults
            {'margin': 0.3}
        """
        file = sys._getframe(1).f_code.co_filename
        self._check(name, about)

        def add(make: Anything) -> Anything:
            if not callable(make) or not hasattr(make, "__qualname__"):
                raise TypeError(
                    f"a {self.kind} is a class or a function, and {name!r} is registered as a {type(make).__name__}: "
                    "write a function that calls it"
                )
            part = Part(name, make, file, fixed or {}, usual or {}, about, listed)
            if not part.is_ours:
                self._import_home()  # the names in there are taken
            for registry in (self, *self._shown_in):
                before = registry._known().get(name)
                if before is not None and not _replaces(make, file, before):
                    raise ValueError(f"there is a {registry.kind} {name!r} already, in {before.file}")
            for setting in part.usual.keys() - _settings(make).keys():  # complains now about a setting without a type
                raise ValueError(f"usual of the {self.kind} {name!r}: it has no setting {setting!r}")
            self._parts[name] = part
            return make

        return add

    def _check(self, name: str, about: Mapping[str, Any]) -> None:
        """What `register` is told, before it is told of what."""
        if not isinstance(name, str):
            what = getattr(name, "__name__", None) if callable(name) else None
            how = f'write @register("{what}")' if what else f"got {name!r}"
            raise TypeError(f"a {self.kind} is registered by a name, which is a text: {how}")
        if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise ValueError(
                f"the name of a {self.kind} is of letters and digits, and of - _ . + @ after the first, at most "
                f"{LONGEST_NAME} of them, got {name[: LONGEST_NAME + 1]!r}"
            )
        if self._taken(name):
            raise ValueError(f"there is a {self.kind} {name!r} in rankshot: call yours otherwise")
        if self._about is None:
            return
        known = {"summary": str, **self._about}
        for key, value in about.items():
            kind = known.get(key)
            if kind is None:
                names = ", ".join(map(repr, ("fixed", "usual", *known)))
                raise TypeError(f"a {self.kind} is not registered with {key!r}: there is {names}")
            if not isinstance(value, (kind, int) if kind is float else kind):
                wanted = {float: "number", dict: "dictionary", str: "text"}.get(kind, kind.__name__)
                raise TypeError(f"{key} of the {self.kind} {name!r} must be a {wanted}, got {value!r:.60}")

    def __getitem__(self, name: str) -> Part:
        if not isinstance(name, str):
            raise TypeError(f"a {self.kind} is chosen by its name, which is a text, got {name!r:.60}")
        if name not in self:
            raise self.unknown(name, self)
        return self._known()[name]

    def unknown(self, name: str, known: Iterable[str]) -> ValueError:
        """There is no part of this name among those that can be chosen."""
        known = list(known)
        like = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {like[0]!r}?" if like else f"there is {', '.join(map(repr, known))}."
        return ValueError(f"unknown {self.kind} {name!r}: {hint} One of your own comes with --load FILE")

    def __contains__(self, name: object) -> bool:
        return name in self._known() or (self._home is not None and self._import_home() and name in self._known())

    def __iter__(self) -> Iterator[str]:
        self._import_home()
        return iter([name for name, part in self._known().items() if part.listed])

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
        elif _has_list(hints[name]):
            raise ValueError(
                f"the setting {name!r} of {make.__qualname__} is a list: write {name}: tuple[int, ...] = …, say"
            )
    return settings


def _has_list(hint: Any) -> bool:
    """Whether something may be a list, which could be changed, and so is no setting."""
    inside = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union, Annotated) else ()
    return hint is list or typing.get_origin(hint) is list or any(map(_has_list, inside))


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
    if origin is tuple and inside:
        items = inside[:1] if inside[1:] == (...,) else inside
        return hint if all(simple(item) is not None for item in items) else None
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
    """Run Python files of one's own that register networks, losses, methods, data sets, metrics or gallery stores.

    What they register is then known by its name, as with `--load FILE` on the command line. The files are run as they
    are: load only files that you trust.

    Args:
        files: their paths. Each must register something.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a file cannot be run, or registers nothing.

    Examples:
        >>> from pathlib import Path
        >>> import rankshot
        >>> code = '''
        ... from rankshot import losses
        ...
        ... @losses.register("wide-triplet")
        ... class WideTriplet(losses.TripletLoss):
        ...     def __init__(self, margin: float = 0.5) -> None:
        ...         super().__init__(margin)
        ... '''
        >>> _ = Path("mine.py").write_text(code)
        >>> rankshot.load_files(["mine.py"])
        >>> rankshot.TrainConfig.of(method="wide-triplet").method.settings
        {'margin': 0.5}
    """
    for file in map(Path, files):
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}" if not file.exists() else f"{file} is no file")
        beside, before = str(file.resolve().parent), _own_parts()
        sys.path.insert(0, beside)  # as when a file is run by Python itself
        try:
            names = vars(_run(file))
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
        parts = _own_parts()
        if all(part is before.get(at) for at, part in parts.items()) and not _imported(parts.values(), names):
            raise ValueError(
                f"{file} registers nothing: decorate a class or a function with register of rankshot.models, .losses, "
                ".methods, .data, .ranking or .gallery"
            )


def _run(file: Path) -> types.ModuleType:
    """As a module that can be found by its name, which torch.compile asks for."""
    name = f"rankshot_loaded_{hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:12]}"
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = str(file)
    exec(compile(file.read_bytes(), str(file), "exec"), vars(module))
    return module


def _own_parts() -> dict[tuple[str, str], Part]:
    """Every part of the user's own, by its kind and name: another object whenever it is registered."""
    return {
        (registry.kind, name): part
        for registry in REGISTRIES
        for name, part in registry.snapshot().items()
        if not part.is_ours
    }


def _imported(parts: Iterable[Part], names: Mapping[str, Any]) -> bool:
    """Whether one of these parts lies in what a file, which has these names now, has imported: before, perhaps."""
    modules = {
        value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        for value in names.values()
    }
    modules.discard(names.get("__name__"))  # the file itself
    found = [sys.modules[name] for name in modules if isinstance(name, str) and name in sys.modules]
    files = [file for module in map(vars, found) for file in module.get("__path__", [module.get("__file__")])]
    places = [Path(file).resolve() for file in files if file is not None]
    return any(Path(part.file).resolve().is_relative_to(place) for part in parts for place in places)
