"""Changes to bytes, to JSON, and to what a file is, by random numbers."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .arena import Arena

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**60, 2**63 - 1, 2**64 - 1)
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 3, 255, 65536, 10**6, 2**31, 2**32, 2**53, 2**60, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63), 10**400,
    0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
ODD_TEXTS = (
    "", " ", ".", "..", "/", "a\x00b", "\x1b[31mred\x1b[0m", "\ud800", "é" * 10, "\u202egnp.exe", "A" * 5000, "-", "--help",
    "NaN", "null", "1e999", "١٢", "🐈", "../../canary/x", "glyphs", "%s%n", "{}", "\n\nrankshot: fine", "con",
    "'; drop table",
)  # fmt: skip


def changed_bytes(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """A few bytes flipped, set, cut away, repeated or added."""
    changed, done = bytearray(content), []
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        how = chance.choice((flip, flip, flip, set_number, cut, cut_middle, repeat, insert))
        done.append(how(changed, chance))
    return bytes(changed), ", ".join(done)


def flip(content: bytearray, chance: random.Random) -> str:
    if not content:
        return "nothing to flip"
    offset = _offset(content, chance)
    content[offset] ^= 1 << chance.randrange(8)
    return f"bit flipped at {offset}"


def set_number(content: bytearray, chance: random.Random) -> str:
    size = chance.choice((1, 2, 4, 8))
    if len(content) < size:
        return "too short"
    offset = _offset(content[: len(content) - size + 1], chance)
    value = chance.choice(INTERESTING) % 256**size
    content[offset : offset + size] = value.to_bytes(size, chance.choice(("little", "big")))
    return f"{value} at {offset}"


def cut(content: bytearray, chance: random.Random) -> str:
    end = chance.randrange(len(content) + 1)
    del content[end:]
    return f"cut at {end}"


def cut_middle(content: bytearray, chance: random.Random) -> str:
    start = chance.randrange(len(content) + 1)
    count = chance.choice((1, 4, 100))
    del content[start : start + count]
    return f"{count} bytes gone at {start}"


def repeat(content: bytearray, chance: random.Random) -> str:
    start = chance.randrange(len(content) + 1)
    part = content[start : start + chance.choice((4, 64, 512))]
    content[start:start] = part * chance.choice((1, 3, 50))
    return f"repeated at {start}"


def insert(content: bytearray, chance: random.Random) -> str:
    start = chance.choice((0, len(content), chance.randrange(len(content) + 1)))
    count = chance.choice((1, 16, 1000))
    content[start:start] = chance.choice((b"\0" * count, b"\xff" * count, chance.randbytes(count)))
    return f"{count} bytes more at {start}"


def _offset(content: bytearray, chance: random.Random) -> int:
    """Headers come first and matter most."""
    return chance.randrange(min(len(content), 64)) if chance.random() < 0.5 else chance.randrange(len(content))


def odd_value(chance: random.Random, arena: Arena, depth: int = 0) -> Any:
    """Something of JSON, of any type."""
    kind = chance.randrange(9 if depth < 2 else 6)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind in (1, 2, 3):
        return chance.choice(NUMBERS)
    if kind in (4, 5):
        paths = (str(arena.canary / "empty"), "../canary/empty", str(arena.canary / "secret.txt"))
        return chance.choice((*ODD_TEXTS, *paths))
    if kind == 6:
        return [odd_value(chance, arena, depth + 1) for _ in range(chance.choice((0, 1, 3)))]
    if kind == 7:
        return {chance.choice(ODD_TEXTS): odd_value(chance, arena, depth + 1) for _ in range(chance.choice((0, 1, 2)))}
    return [chance.choice(NUMBERS)] * chance.choice((3, 1000))


Path_ = tuple[Any, ...]


def paths_in(value: Any, before: Path_ = ()) -> list[Path_]:
    """Of everything within, by keys and numbers."""
    paths = [before]
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        paths += paths_in(item, (*before, key))
    return paths


def changed_json(value: Any, chance: random.Random, arena: Arena) -> tuple[str, str]:
    """JSON as text, with something else in it than there was."""
    value = json.loads(json.dumps(value))
    paths = paths_in(value)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        where = chance.choice(paths)
        if not where:
            value, change = (odd_value(chance, arena), "all of it") if chance.random() < 0.2 else (value, "nothing")
            done.append(change)
            continue
        holder = value
        try:
            for key in where[:-1]:
                holder = holder[key]
            done.append(_change(holder, where[-1], chance, arena))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
    text = json.dumps(value, indent=chance.choice((None, 1)), ensure_ascii=chance.random() < 0.5)
    if chance.random() < 0.15:
        text, change = _as_text(text, chance)
        done.append(change)
    return text, "; ".join(done)


def _change(holder: Any, key: Any, chance: random.Random, arena: Arena) -> str:
    how = chance.random()
    if how < 0.15:
        del holder[key]
        return f"without {key!r}"
    if how < 0.25 and isinstance(holder, dict):
        holder[chance.choice(("x", "model", "", "__class__", "images"))] = odd_value(chance, arena)
        return "one key more"
    old, holder[key] = holder[key], odd_value(chance, arena)
    if how > 0.9 and isinstance(old, (int, float)) and not isinstance(old, bool):
        holder[key] = old * chance.choice((-1, 2, 10, 1000, 0.5))
    return f"{key!r} is {str(holder[key])[:40]!r}"


def _as_text(text: str, chance: random.Random) -> tuple[str, str]:
    def deep(opening: str, closing: str) -> str:
        depth = chance.choice((500, 900, 5000, 100_000))
        return opening * depth + closing * depth

    ways: list[tuple[str, Callable[[], str]]] = [
        ("100,000 deep", lambda: deep("[", "]")),
        ("deep objects", lambda: deep('{"a":', "}")),
        ("cut", lambda: text[: chance.randrange(len(text) + 1)]),
        ("a key twice", lambda: text.replace("{", '{"model": 1, "model": 2, ', 1)),
        ("a byte order mark", lambda: "\ufeff" + text),
        ("two of it", lambda: text + text),
        ("long", lambda: text + " " * 10**6),
        ("a number of many digits", lambda: text.replace("1", "1" * 5000, 1)),
        ("empty", lambda: ""),
        ("a NUL", lambda: text + "\x00"),
        ("deep within", lambda: text.replace(": ", ": " + "[" * 2000, 1)),
    ]
    name, make = chance.choice(ways)
    return make(), name


def other_file(path: Path, chance: random.Random, arena: Arena, *, named: bool = False) -> str:
    """The file becomes something else than a plain file with content.

    named   by the user, who may have put a link there: it leads to nothing that is secret
    """
    inside = os.path.relpath(arena.canary, path.parent)
    outside = ("secret.txt", "config.json", "lines.bin", "picture.png", "data.sqlite", "nothing", "empty")
    links = () if named else ("link", "link", "link")
    way = chance.choice(("gone", "empty", "folder", "fifo", "zero", "loop", "large", "moved", *links))
    content = path.read_bytes() if path.is_file() else b""
    if path.is_dir() and not path.is_symlink():
        return "left alone"
    path.unlink(missing_ok=True)
    if way == "empty":
        path.write_bytes(b"")
    elif way == "folder":
        path.mkdir()
    elif way == "fifo":
        os.mkfifo(path)
    elif way == "zero":
        path.symlink_to("/dev/zero")
    elif way == "loop":
        path.symlink_to(path.name)
    elif way == "link":
        target = chance.choice(outside)
        path.symlink_to(f"{inside}/{target}")
        way = f"a link to canary/{target}"
    elif way == "large":
        path.write_bytes(content)
        os.truncate(path, 2**34)  # of which nothing is on the disk
    elif way == "moved":
        aside = arena.work / "aside"
        aside.write_bytes(content)
        path.symlink_to(aside)
        way = "a link to what it was"
    return f"{path.name}: {way}"


def packed(form: str, *values: int) -> bytes:
    """As `struct.pack`, with whatever does not fit cut."""
    sizes = {"B": 1, "H": 2, "I": 4, "Q": 8}
    order = form[0] if form[0] in "<>" else "<"
    return b"".join(
        struct.pack(order + one, value % 256 ** sizes[one]) for one, value in zip(form.lstrip("<>"), values, strict=True)
    )
