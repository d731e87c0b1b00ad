"""The SQLite file of a gallery, opened with care: who made it may be a stranger, and others may be writing to it.

A database can hold more than data: triggers and views run when it is used, a rollback journal can name any file to delete,
and `-wal` may be a link. So a database is used only if it holds exactly the tables that we make, and if nothing but plain
files lies beside it. SQLite keeps readers apart from writers (its write-ahead log), between threads and between processes.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from rankshot.files import check_own, opened, wait_for_folder

from .store import Damaged

DATABASE = "gallery.sqlite"
BESIDE = ("-wal", "-shm")  # of SQLite's own
JOURNAL = "-journal"  # never left by us: our databases have a write-ahead log
MARK = 0x52414E4B  # "RANK": whose database it is
FORMAT = 2
LITTLE = 2**16  # bytes: SQLite grows its log in steps of half of it
LONGEST = 2**23  # bytes of one value: what a gallery from elsewhere can make us read at once
COPIES, MOST_COPIED = 20, 2**32  # tries to copy a database while nobody changes it, and bytes of one
PATIENCE = 20.0  # seconds to wait for another process that is writing
TABLES = (
    # What the gallery is about, as JSON; how many changes there were, and how many rows of vectors count.
    "CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), about TEXT NOT NULL, dimensions INTEGER NOT NULL, "
    "change INTEGER NOT NULL, rows INTEGER NOT NULL)",
    # What is there. A row is the place of its vector; ids are bytes, since file names need not be text.
    "CREATE TABLE items (row INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, metadata TEXT NOT NULL, source TEXT, "
    "checksum INTEGER NOT NULL)",
    # Rows that are there no more, and since which change.
    "CREATE TABLE deleted (row INTEGER PRIMARY KEY, change INTEGER NOT NULL)",
    "CREATE INDEX deleted_since ON deleted (change)",
    # Vectors that were written together, with their checksum.
    "CREATE TABLE blocks (first INTEGER PRIMARY KEY, rows INTEGER NOT NULL, checksum INTEGER NOT NULL)",
)


class Database:
    """Connections to one file, each used by one thread at a time. Not to be carried into a forked process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.absolute() / DATABASE
        self._process = os.getpid()
        self._free: list[sqlite3.Connection] = []
        # Of a gallery that nobody has closed. Not at the end of a process, which may be a forked one.
        weakref.finalize(self, _close_all, self._free, self._process).atexit = False
        self._lock, self._is_closed = threading.Lock(), False
        self._turn = threading.Lock()  # of the threads that write: SQLite lets those who wait try again at random
        self.is_writable = os.access(folder, os.W_OK) and os.access(self.path, os.W_OK)
        check_files(self.path)
        self._identity = _identity(self.path)
        self._uri = self._address()
        with self._borrowed() as connection:
            _check_ours(self.path, connection)
            _check_size(self.path, connection)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            _close_all(self._free, self._process)

    def _check_in_place(self) -> None:
        """Its files are found by their names: under these another gallery may lie by now."""
        if _identity(self.path) != self._identity:
            raise FileNotFoundError(f"{self.path.parent} was moved or replaced since it was opened: open it again")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Everything in the block sees one moment, whatever others write meanwhile."""
        with self._borrowed() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")

    def settle(self) -> None:
        """Everything into the database itself: its file alone is the gallery then."""
        with self._borrowed() as connection:
            _carry_over(connection, self.path.parent)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Alone among all threads and processes; what the block did counts when it ends well, and is on the disk then."""
        if not self.is_writable:
            raise PermissionError(errno.EACCES, "the gallery is read-only", str(self.path.parent))
        if not self._turn.acquire(timeout=PATIENCE):
            raise TimeoutError(f"another thread has been writing to {self.path.parent} for {PATIENCE:g} s")
        try:
            with self._borrowed() as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise
        finally:
            self._turn.release()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._is_closed:
                raise ValueError(f"{self.path.parent} was closed: open it again")
            if os.getpid() != self._process:
                raise ValueError(f"{self.path.parent} was opened before this process was forked: open it here again")
            self._check_in_place()
            connection = self._free.pop() if self._free else None
        with translating_errors(self.path):
            connection = connection or _connected(self._uri)
            is_sound = False  # after an error nobody knows what state it is in
            try:
                yield connection
                is_sound = True
            except sqlite3.Error:
                raise
            except BaseException:
                is_sound = not connection.in_transaction
                raise
            finally:
                with self._lock:
                    if is_sound and not self._is_closed:
                        self._free.append(connection)
                        connection = None
                if connection is not None:
                    connection.close()

    def _address(self) -> str:
        address = f"file:{quote(str(self.path.absolute()))}"
        if self.is_writable:
            return f"{address}?mode=rw"
        try:
            with closing(_connected(f"{address}?mode=ro")) as connection:
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
            return f"{address}?mode=ro"
        except sqlite3.OperationalError:  # where nothing can be written, SQLite has no place to tell others what it reads
            pass
        temporary = Path(tempfile.mkdtemp(prefix="rankshot-gallery-"))  # so it is read as it is now, from a copy
        weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
        self._copy_to(temporary)
        return f"file:{quote(str(temporary / DATABASE))}?mode=rw"

    def _copy_to(self, folder: Path) -> None:
        """Of one moment: somebody may be writing, from where the folder can be written to."""
        files = [self.path, self.path.with_name(DATABASE + BESIDE[0])]
        for _ in range(COPIES):
            before = [_state(file) for file in files]
            if sum(state[0] for state in before if state is not None) > MOST_COPIED:
                raise OSError(
                    errno.EFBIG, "is too large to be read where nothing can be written: use a copy", str(self.path)
                )
            for file in files:
                (folder / file.name).unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    shutil.copyfile(file, folder / file.name)
            if [_state(file) for file in files] == before:
                return
        raise TimeoutError(
            f"another process is writing to {self.path.parent}, which cannot be shared with it: it is read-only"
        )


def create(folder: Path, dimensions: int, about: str) -> None:
    """A new database in a folder of one's own: there whole, or not at all."""
    path = folder / DATABASE
    making = folder / f".making-{os.urandom(8).hex()}"
    making.mkdir()
    try:
        with translating_errors(path):
            connection = _connected(f"file:{quote(str((making / DATABASE).absolute()))}?mode=rwc")
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN")
                for statement in TABLES:
                    connection.execute(statement)
                connection.execute("INSERT INTO state VALUES (1, ?, ?, 0, 0)", (about, dimensions))
                connection.execute(f"PRAGMA application_id = {MARK}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.execute("COMMIT")
                _carry_over(connection, folder)
            finally:
                connection.close()
            with opened(making / DATABASE) as file:
                os.fsync(file.fileno())
            (making / DATABASE).rename(path)
        wait_for_folder(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _carry_over(connection: sqlite3.Connection, folder: Path) -> None:
    """What lies in the log into the database: closing does so too, and says nothing where it fails."""
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() != (0, 0, 0):
        raise OSError(
            errno.ENOSPC if _is_full(folder) else errno.EIO, "the gallery could not be written whole", str(folder)
        )


def check_files(path: Path) -> None:
    """A plain file, with nothing beside it but what SQLite puts there, links least of all."""
    if not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    for suffix in ("", *BESIDE):
        check_own(path.with_name(path.name + suffix))
    if os.path.lexists(path.with_name(path.name + JOURNAL)):
        raise Damaged(f"{path.parent} holds {path.name}{JOURNAL}, which no gallery has: it is not used")


def _close_all(connections: list[sqlite3.Connection], process: int) -> None:
    """In the process that has opened them: SQLite does not want them to be touched in a forked one."""
    while connections and os.getpid() == process:
        connections.pop().close()


def _connected(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA synchronous = FULL")  # what was committed is on the disk
        connection.execute("PRAGMA journal_size_limit = 67108864")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_ours(path: Path, connection: sqlite3.Connection) -> None:
    expected = sqlite3.connect(":memory:")
    try:
        for statement in TABLES:
            expected.execute(statement)
        asked = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        ours, theirs = set(expected.execute(asked)), set(connection.execute(asked))
    finally:
        expected.close()
    (mark,), (version,) = connection.execute("PRAGMA application_id").fetchone(), _version(connection)
    if mark == MARK and version != FORMAT:
        raise ValueError(f"{path} is of format {version}: this version of rankshot reads {FORMAT}")
    if unexpected := sorted(f"{kind} {str(name)[:40]!r}" for kind, name, _, _ in theirs - ours):
        raise Damaged(f"{path} is not used: it holds the {unexpected[0]}, which is not what rankshot made")
    if mark != MARK or ours - theirs:
        raise Damaged(f"{path} is no gallery of rankshot's, or it is damaged: its tables are not all there")


def _check_size(path: Path, connection: sqlite3.Connection) -> None:
    """SQLite takes what is cut off for zeros. While its log holds pages, the file may rightly be shorter.

    The file itself must not be opened here: to close it would let go of the locks that other connections of this process
    have on it.
    """
    (pages,), (size,) = (
        connection.execute("PRAGMA page_count").fetchone(),
        connection.execute("PRAGMA page_size").fetchone(),
    )
    file_size = path.stat().st_size
    if (file_size % size or file_size < pages * size) and not _has_content(path.with_name(path.name + BESIDE[0])):
        raise Damaged(f"{path} is damaged: it is cut short, {file_size} bytes instead of {pages * size}")


def _version(connection: sqlite3.Connection) -> tuple[int]:
    row: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return row


@contextmanager
def translating_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        where = path.parent
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise TimeoutError(f"another process has been writing to {where} for {PATIENCE:g} s") from None
        if code in _SYSTEM:
            number = errno.ENOSPC if code == sqlite3.SQLITE_IOERR and _is_full(where) else _SYSTEM[code]
            raise OSError(number, os.strerror(number), str(where)) from None
        raise Damaged(f"{where} is damaged: {error}. What is intact can be rescued into a new gallery") from None


_SYSTEM = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
}


def _is_full(folder: Path) -> bool:
    """Where SQLite finds no room for its log, it tells of an error of the disk and not which one."""
    if not hasattr(os, "statvfs") or not folder.exists():
        return False
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < LITTLE


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _state(path: Path) -> tuple[int, int] | None:
    return (path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
