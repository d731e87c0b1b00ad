"""Gallery folders: bytes changed in any of their files, files that are something else, databases with more in them."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

from .arena import Arena
from .case import Case
from .fuzz_json import settle, steps_of
from .mutations import changed_bytes, other_file

HOSTILE_SQL = (
    "create table extra (x)",
    "create view v as select * from {table}",
    "create trigger t after insert on {table} begin delete from {table}; end",
    "create trigger t after insert on {table} begin select load_extension('x'); end",
    "create index i on {table} ({column})",
    "drop table {table}",
    "delete from {table}",
    "update {table} set {column} = {value}",
    "update {table} set {column} = {value} where rowid = 1",
    "insert into {table} select * from {table}",
    "alter table {table} rename to other",
    "alter table {table} add column more default (randomblob(10))",
    "pragma user_version = 99",
    "pragma application_id = 99",
    "pragma writable_schema = on; update sqlite_master set sql = 'create table x (y)'",
    "pragma writable_schema = on; update sqlite_master set rootpage = 1",
    "pragma journal_mode = delete",
    "create virtual table f using fts5(x)",
    "attach '{canary}/made.sqlite' as outside",
)
VALUES = (
    "null",
    "'x'",
    "-1",
    "9223372036854775807",
    "1e308",
    "x'00ff'",
    "''",
    "zeroblob(100000000)",
    "'[' || char(0)",
    "0",
)


class Galleries:
    """One file of a gallery changed, and a command that opens it."""

    name, share = "galleries", 14
    families: tuple[str, ...] = ("info", "search", "add", "delete", "rescue")

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        data = settle(arena, goods)
        family = chance.choices(self.families, (3, 5, 2, 2, 2))[0]
        folder = arena.work / "gallery"
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        path = chance.choice(files)
        how, probe = chance.random(), '"' if family == "search" else None
        if how < 0.2:
            description = other_file(path, chance, arena)
        elif how < 0.3:
            description = self._more(folder, chance, arena)
        elif how < 0.65 and (databases := [file for file in files if file.read_bytes()[:6] == b"SQLite"]):
            description, probe = _with_sql(chance.choice(databases), chance, arena), None
        else:
            content, description = changed_bytes(path.read_bytes(), chance)
            path.write_bytes(content)
            description = f"{path.name}: {description}"
        return Case(self.name, f"{description}; {family}", steps_of(family, data), None, family, probe)

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        return Case(self.name, "good", steps_of(family, settle(arena, goods)))

    def _more(self, folder: Path, chance: random.Random, arena: Arena) -> str:
        """A file that was not there, or the folder is a link."""
        names = [file.name for file in folder.iterdir()]
        name = chance.choice(names)
        beside = chance.choice(
            (f".{name}.partial", f"{name}-wal", f"{name}-shm", f"{name}-journal", "x", ".lock", f"{name}.tmp")
        )
        path = folder / beside
        if path.exists() or path.is_symlink():
            path.unlink()
        way = chance.choice(("link", "link", "bytes", "fifo", "folder", "linked folder"))
        if way == "link":
            path.symlink_to(os.path.relpath(arena.canary / chance.choice(("secret.txt", "nothing", "data.sqlite")), folder))
        elif way == "bytes":
            path.write_bytes(chance.randbytes(chance.choice((1, 100, 5000))))
        elif way == "fifo":
            os.mkfifo(path)
        elif way == "folder":
            path.mkdir()
        else:
            folder.rename(arena.work / "elsewhere")
            folder.symlink_to("elsewhere")
        return f"{beside}: {way}"


def _with_sql(path: Path, chance: random.Random, arena: Arena) -> str:
    """A statement that this database never saw."""
    database = sqlite3.connect(path)
    try:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        table = chance.choice(tables or ["x"])
        columns = [row[1] for row in database.execute(f'pragma table_info("{table}")')]
        filled = {
            "{table}": f'"{table}"',
            "{column}": f'"{chance.choice(columns or ["x"])}"',
            "{value}": chance.choice(VALUES),
        }
        statement = chance.choice(HOSTILE_SQL).replace("{canary}", str(arena.work))
        for name, value in filled.items():
            statement = statement.replace(name, value)
        try:
            database.executescript(statement)
            database.commit()
        except sqlite3.Error as error:
            return f"{path.name}: {statement} ({error})"
        return f"{path.name}: {statement}"
    except sqlite3.Error as error:
        return f"{path.name}: {error}"
    finally:
        database.close()
