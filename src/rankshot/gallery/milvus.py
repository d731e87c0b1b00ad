"""A gallery in Milvus: in a file on one machine (milvus-lite), or on a server or cluster, by the same calls.

    Gallery("gallery.db", …)                      milvus-lite
    Gallery("http://host:19530/photos", …)        a server, collection `photos`

What the gallery is about lies in a collection of its own, `rankshot_galleries`. Threads may share a gallery. Several
processes may use a server at once, but Milvus has no transactions: two that add the same id at the same moment both
succeed, and the last one counts; a large addition becomes visible part by part. A file of milvus-lite is open in one
process alone.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar
from urllib.parse import quote, unquote, urlsplit

import numpy as np

from rankshot.schema import Between, checked

from .filters import Wanted
from .store import (
    CannotKeep,
    Chunk,
    Filter,
    Hit,
    Metadata,
    NotAnswering,
    Source,
    UnknownId,
    Vectors,
    check_ids,
    decoded,
    encoded,
    there_already,
)

ABOUT = "rankshot_galleries"
LONGEST_KEY = 1024  # bytes of a key
PLAIN = "/._-~ "  # what a key may have beside letters and digits: the rest is written as %XX, since Milvus escapes nothing
MOST_HITS = 16_384  # that Milvus returns of a search
IDS_AT_ONCE = 16_000  # fewer than MOST_HITS; every request waits until all that came before can be seen, so few are better
BYTES_AT_ONCE = 2**24  # of a request
NOT_LOADED = 101  # Milvus's code for a collection that is not in memory
PAUSES = (0.2, 1.0, 3.0)  # seconds between tries
CONNECTING = 3.0  # seconds to wait for a server to answer at all
Answer = TypeVar("Answer")
FILES: Counter[str] = Counter()  # of milvus-lite that are open here, and how many galleries have them
FILES_LOCK = threading.Lock()
SOURCE = "source"  # the field of the files that vectors were made of; earlier galleries have none


class Description(TypedDict):
    """What is told of a gallery."""

    about: dict[str, Any]
    dimensions: Annotated[int, Between(1, 2**16)]


class Origin(TypedDict):
    """A `Source`, as Milvus keeps it."""

    size: int
    time: int
    digest: str


def is_milvus(uri: str) -> bool:
    return uri.endswith(".db") or urlsplit(uri).scheme in ("http", "https", "tcp")


class MilvusStore:
    """See `Store`. A request that fails is tried again, a few times; then it is an error that tells what was done."""

    def __init__(self, uri: str, about: Mapping[str, Any] | None = None, dimensions: int | None = None) -> None:
        """With `about` and `dimensions` a new one, without them one that is there."""
        from pymilvus import MilvusClient, MilvusException
        from pymilvus.exceptions import DataNotMatchException

        for name in ("pymilvus", "grpc", "milvus_lite"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is told once, by us
        self._exception, self._mismatch = MilvusException, DataNotMatchException
        self.uri = uri
        server, self.collection = _parts(uri)
        if about is None and uri.endswith(".db") and not Path(uri).exists():
            raise FileNotFoundError(f"{uri} is no gallery: there is nothing of that name")
        self._client: Any = self._tried(lambda: MilvusClient(server, timeout=CONNECTING))
        self._file = os.path.abspath(uri) if uri.endswith(".db") else None
        self._turn = threading.Lock()  # of the threads that change something: they look first, and then leap
        if self._file is not None:
            with FILES_LOCK:
                FILES[self._file] += 1
        try:
            self._open(about, dimensions)
        except BaseException:
            self.close()
            raise

    def _open(self, about: Mapping[str, Any] | None, dimensions: int | None) -> None:
        exists = self._tried(lambda: self._client.has_collection(self.collection))
        if about is not None and dimensions is not None:
            if exists:
                raise FileExistsError(f"{self.uri} exists already")
            self.about, self.dimensions, self._has_sources = dict(about), dimensions, True
            self._create()
            return
        if not exists:
            raise FileNotFoundError(f"{self.uri} is no gallery: there is no collection {self.collection!r}")
        entities = self._tried(self._described)
        if not entities:
            raise ValueError(f"{self.uri} holds a collection {self.collection!r} that is no gallery of rankshot's")
        description: Description = checked(_plain(entities[0]["about"]), Description, f"{self.uri}: what it is about")
        self.about, self.dimensions = description["about"], description["dimensions"]
        fields = self._tried(lambda: self._client.describe_collection(self.collection))["fields"]
        self._has_sources = any(field["name"] == SOURCE for field in fields)
        self._tried(lambda: self._client.load_collection(self.collection))

    def _described(self) -> Any:
        """What the gallery is about; nothing, if it is none."""
        if not self._client.has_collection(ABOUT):
            return []
        self._client.load_collection(ABOUT)  # milvus-lite forgets that between processes
        return self._client.get(ABOUT, ids=[self.collection], output_fields=["about"])

    def close(self) -> None:
        self._client.close()
        with FILES_LOCK:
            if self._file is not None:
                FILES[self._file] -= 1
                if not FILES[self._file]:
                    _let_go(self._file)
                self._file = None

    def __len__(self) -> int:
        result = self._tried(lambda: self._client.query(self.collection, filter="", output_fields=["count(*)"]))
        return int(result[0]["count(*)"])

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(self.sources([id]))

    def add(
        self,
        vectors: Vectors,
        ids: Sequence[str | None],
        metadata: Sequence[Metadata],
        sources: Sequence[Source | None] | None = None,
        *,
        replace: bool = False,
    ) -> list[str]:
        """Each request is all or none; more than 16 MB take several, and an error tells how many were added."""
        check_ids(ids)
        for id in ids:
            if id is not None and len(_key(id)) > LONGEST_KEY:
                raise ValueError(f"an id may have {LONGEST_KEY} bytes in Milvus, got {len(_key(id))}: {id[:40]!r}…")
        encoded(metadata)  # complains about what JSON cannot hold
        with self._turn:
            names = self._numbered(ids)
            if not replace and (known := self._known(names)):
                raise there_already(next(name for name in names if name in known))
            rows = [
                {"id": _key(id), "vector": vector, "metadata": dict(note)}
                for id, vector, note in zip(names, np.asarray(vectors, np.float32), metadata, strict=True)
            ]
            if self._has_sources:
                for row, source in zip(rows, sources or [None] * len(rows), strict=True):
                    row[SOURCE] = {} if source is None else source._asdict()
            at_once = self._rows_at_once()
            for start in range(0, len(rows), at_once):
                chunk = rows[start : start + at_once]
                # An upsert, since a try whose answer was lost may have been carried out.
                done = f"{start} of {len(rows)} images were added" if start else "nothing was added"
                self._tried(partial(self._written, chunk), done)
            self._settle()
        return names

    def _written(self, rows: list[dict[str, Any]]) -> None:
        """Not all that JSON can hold has a place here: no number past 64 bits, no half of a character."""
        try:
            self._client.upsert(self.collection, rows)
        except self._mismatch as error:
            why = str(error.message).rpartition("Detail: ")[2]
            raise CannotKeep(f"Milvus cannot keep such metadata: {why}") from None

    def _numbered(self, ids: Sequence[str | None]) -> list[str]:
        """Ids that are left open become the next numbers that are free."""
        names = [id for id in ids if id is not None]
        taken, number = set(names), len(self) if len(names) < len(ids) else 0
        open_ones: list[str] = []
        while len(names) + len(open_ones) < len(ids):
            candidates = [str(number + step) for step in range(len(ids) - len(names) - len(open_ones))]
            known = self._known(candidates) | taken
            open_ones += [name for name in candidates if name not in known]
            number += len(candidates)
        rest = iter(open_ones)
        return [next(rest) if id is None else id for id in ids]

    def delete(self, ids: Sequence[str]) -> None:
        unique_ids = list(dict.fromkeys(ids))
        with self._turn:
            known = self._known(unique_ids)
            for id in unique_ids:
                if id not in known:
                    raise UnknownId(id, len(self))
            for start in range(0, len(unique_ids), IDS_AT_ONCE):
                keys = [_key(id) for id in unique_ids[start : start + IDS_AT_ONCE]]
                done = f"{start} of {len(unique_ids)} images were deleted" if start else "nothing was deleted"
                self._tried(partial(self._client.delete, self.collection, ids=keys), done)
            self._settle()

    def search(self, queries: Vectors, k: int, where: Filter | None = None, *, exactly: bool = True) -> list[list[Hit]]:
        expression = where.expression if isinstance(where, Wanted) else None
        asked = np.asarray(queries, np.float32)
        if where is None or expression is not None:
            return self._nearest(asked, min(k, MOST_HITS), expression or "")
        return [self._filtered(query, k, where) for query in asked]

    def _filtered(self, query: Vectors, k: int, where: Filter) -> list[Hit]:
        """Of more and more hits those that a function lets through."""
        most = 4 * k
        while True:
            (hits,) = self._nearest(query[None], min(most, MOST_HITS), "")
            passed = [hit for hit in hits if where(hit.metadata)]
            if len(passed) >= k or len(hits) < most:
                return passed[:k]
            most *= 4

    def _nearest(self, queries: Vectors, k: int, expression: str) -> list[list[Hit]]:
        results = self._tried(
            lambda: self._client.search(
                self.collection, list(queries), limit=k, filter=expression, output_fields=["metadata"]
            )
        )
        return [
            [Hit(_id(hit["id"]), float(hit["distance"]), _plain(hit["entity"]["metadata"])) for hit in hits]
            for hits in results
        ]

    def vector(self, id: str) -> Vectors:
        return np.asarray(self._entity(id, "vector"), np.float32)

    def metadata(self, id: str) -> dict[str, Any]:
        return _plain(self._entity(id, "metadata"))

    def _entity(self, id: str, field: str) -> Any:
        entities = self._tried(lambda: self._client.get(self.collection, ids=[_key(id)], output_fields=[field]))
        if not entities:
            raise UnknownId(id, len(self))
        return entities[0][field]

    def sources(self, ids: Sequence[str]) -> dict[str, Source | None]:
        sources: dict[str, Source | None] = {}
        fields = ["id", SOURCE] if self._has_sources else ["id"]
        for start in range(0, len(ids), IDS_AT_ONCE):
            keys = [_key(id) for id in ids[start : start + IDS_AT_ONCE]]
            for entity in self._tried(partial(self._client.get, self.collection, ids=keys, output_fields=fields)):
                sources[_id(entity["id"])] = _source(entity)
        return sources

    def chunks(self) -> Iterator[Chunk]:
        fields = ["id", "vector", "metadata", *([SOURCE] if self._has_sources else [])]
        steps = self._tried(
            lambda: self._client.query_iterator(self.collection, batch_size=self._rows_at_once(), output_fields=fields)
        )
        try:
            while entities := self._tried(steps.next):
                yield Chunk(
                    [_id(entity["id"]) for entity in entities],
                    np.array([entity["vector"] for entity in entities], np.float32),
                    [_plain(entity["metadata"]) for entity in entities],
                    [_source(entity) for entity in entities],
                )
        finally:
            steps.close()

    def verify(self) -> list[str]:
        """Milvus looks after its own files."""
        return []

    def _create(self) -> None:
        from pymilvus import DataType

        def make(name: str, dimensions: int, *fields: str) -> None:
            schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("id", DataType.VARCHAR, max_length=LONGEST_KEY, is_primary=True)
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
            for field in fields:
                schema.add_field(field, DataType.JSON)
            index = self._client.prepare_index_params()
            index.add_index("vector", index_type="FLAT", metric_type="IP")  # exact
            self._client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")

        if not self._tried(lambda: self._client.has_collection(ABOUT)):
            self._tried(lambda: make(ABOUT, 2, "about"))
        self._tried(lambda: make(self.collection, self.dimensions, "metadata", SOURCE))
        description = {"about": self.about, "dimensions": self.dimensions}
        self._tried(
            lambda: self._client.upsert(ABOUT, [{"id": self.collection, "vector": [0.0, 0.0], "about": description}])
        )
        self._settle()

    def _rows_at_once(self) -> int:
        """Whole rows in a request: a vector, its id, and some metadata."""
        return max(1, min(IDS_AT_ONCE, BYTES_AT_ONCE // (4 * self.dimensions + LONGEST_KEY)))

    def _known(self, ids: Sequence[str]) -> set[str]:
        return set(self.sources(ids))

    def _settle(self) -> None:
        """A file has what it was given when it is flushed; a server keeps a log of its own."""
        if self.uri.endswith(".db"):
            self._tried(lambda: self._client.flush(self.collection))

    def _tried(self, act: Callable[[], Answer], done: str = "nothing was changed") -> Answer:
        """Again after a while, where the server does not answer; what it refuses is told at once."""
        for pause in (*PAUSES, None):
            try:
                return self._loaded(act)
            except (self._exception, OSError, TimeoutError) as error:
                if pause is None or not _may_pass(error):
                    said = str(getattr(error, "message", "") or error).splitlines()[0]
                    if said == "Open local milvus failed":
                        said += ": another process may have it open, or it is damaged"
                    raise NotAnswering(f"Milvus at {self.uri}: {said}; {done}") from None
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _loaded(self, act: Callable[[], Answer]) -> Answer:
        """A server that was started again reads its collections for half a minute, and refuses: then this waits for it."""
        try:
            return act()
        except self._exception as error:
            if error.code != NOT_LOADED:
                raise
        self._client.load_collection(self.collection)
        return act()


def _let_go(file: str) -> None:
    """milvus-lite keeps a file for itself until the process ends, unless it is told."""
    with suppress(ImportError, AttributeError):
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(file)


def _may_pass(error: Exception) -> bool:
    """Whether another try may help: the server is away, or busy."""
    said = str(error).lower()
    return any(word in said for word in ("unavailable", "connect", "timeout", "deadline", "not ready", "rate limit"))


def _parts(uri: str) -> tuple[str, str]:
    """The server, or the file, and the collection."""
    if uri.endswith(".db"):
        return uri, "gallery"
    split = urlsplit(uri)
    name = split.path.strip("/") or "gallery"
    if not name.isidentifier():
        raise ValueError(f"a collection must be called like a variable, got {name!r} in {uri}")
    return f"{split.scheme}://{split.netloc}", name


def _key(id: str) -> str:
    return quote(id, safe=PLAIN, errors="surrogateescape")


def _id(key: str) -> str:
    return unquote(key, errors="surrogateescape")


def _plain(metadata: Any) -> dict[str, Any]:
    return metadata if isinstance(metadata, dict) else decoded(metadata)


def _source(entity: Mapping[str, Any]) -> Source | None:
    origin = _plain(entity.get(SOURCE) or {})
    return Source(**checked(origin, Origin, "the source of an image")) if origin else None
