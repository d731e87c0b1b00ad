"""Files of tensors: weights, checkpoints, examples; bits changed, headers rewritten, other types and sizes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from .arena import Arena
from .case import Case
from .fuzz_json import settle, steps_of
from .mutations import NUMBERS, ODD_TEXTS, changed_bytes, changed_json, other_file, packed

# file -> what reads it, and the lines of the answer that must stay where it is accepted
FILES: dict[str, tuple[str, ...]] = {
    "run/model.safetensors": ("evaluate", "classify", "export", "search", "init"),
    "run/state.safetensors": ("resume",),
    "begun/start.safetensors": ("untrained",),
    "classifier/examples.safetensors": ("kept",),
    "classifier/network/model.safetensors": ("kept",),
}
PROBES = {"classify": '"', "kept": '"', "search": '"', "evaluate": "way"}
TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "C64", "X", 7, None)


class Tensors:
    """One file changed, and a command that reads it."""

    name, share = "safetensors", 12
    families: tuple[str, ...] = ("evaluate", "classify", "export", "search", "init", "resume", "untrained", "kept")

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        data = settle(arena, goods)
        name = chance.choices(list(FILES), (4, 3, 1, 3, 1))[0]
        family, path = chance.choice(FILES[name]), arena.work / name
        how, probe = chance.random(), PROBES.get(family)
        if how < 0.08:
            description = other_file(path, chance, arena)
        elif how < 0.5:  # damage: refused, or of no consequence
            content, description = changed_bytes(path.read_bytes(), chance)
            path.write_bytes(content)
        else:
            description, probe = _rewritten(path, chance, arena), None
        return Case(self.name, f"{name}: {description}; {family}", steps_of(family, data), None, family, probe)

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        return Case(self.name, "good", steps_of(family, settle(arena, goods)))


def _rewritten(path: Path, chance: random.Random, arena: Arena) -> str:
    """Another header, without a checksum, as if another program had written it: its values are anybody's."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    notes = header.get("__metadata__", {})
    for key in ("checksum", "sha256"):
        notes.pop(key, None)
    names = [name for name in header if name != "__metadata__"]
    way = chance.choice(("json", "notes", "notes", "type", "shape", "offsets", "name", "size", "more", "values", "values"))
    one: dict[str, Any] = header[chance.choice(names)]
    description = way
    if way == "json":
        text, description = changed_json(header, chance, arena)
    else:
        if way == "notes":
            note = chance.choice([*notes, "update", "x"])
            notes[note] = chance.choice(
                (*ODD_TEXTS, "x", "[1]", "-1", "1e400", "99999999999999999999999", "[" * 10000, "{}", "NaN", 7)
            )
            header["__metadata__"] = notes
            description = f"note {note!r} is {str(notes[note])[:30]!r}"
        elif way == "type":
            one["dtype"] = chance.choice(TYPES)
        elif way == "shape":
            one["shape"] = chance.choice(
                ([], [0], [2**40], [2**63], [-1], [1] * 500, one["shape"][::-1], [*one["shape"], 1], "x")
            )
        elif way == "offsets":
            one["data_offsets"] = [chance.choice((0, *NUMBERS[:18])), chance.choice((len(body), *NUMBERS[:18]))]
        elif way == "name":
            header[chance.choice(ODD_TEXTS)] = header.pop(chance.choice(names))
        elif way == "more":
            header["more"] = {"dtype": "F32", "shape": [0], "data_offsets": [len(body), len(body)]}
        elif way == "values":
            filling = chance.choice(
                (b"\xff\xff\xff\xff", b"\0\0\x80\x7f", b"\0\0\xc0\x7f", b"\xff\xff\x7f\x7f", b"\0\0\0\0", b"\1\0\0\0")
            )
            start, end = one["data_offsets"]
            body = body[:start] + (filling * len(body))[: end - start] + body[end:]
            description = f"values are {filling!r}"
        text = json.dumps(header)
    raw = text.encode("utf-8", "surrogatepass")
    claimed_size = chance.choice((0, 1, 2**20, 2**40, 2**63, 2**64 - 1)) if way == "size" else len(raw)
    path.write_bytes(packed("<Q", claimed_size) + raw + body)
    return description
