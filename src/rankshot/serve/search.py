"""A gallery over HTTP: what is most like some pictures, what is twice there, and more of them."""

from __future__ import annotations

import hmac
import json
import logging
import os
import secrets
import threading
import time
from collections import OrderedDict
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from rankshot.files import write_whole
from rankshot.gallery.gallery import Gallery
from rankshot.gallery.store import CannotKeep, Hit, NotAnswering, encoded
from rankshot.terminal import printable

from . import answers
from .described import A_PICTURE, PICTURES
from .together import Together
from .turns import Turns
from .uploads import Upload, seen_by, uploads_in
from .views import LARGE, SMALL, answer, drawn_file
from .workspace import Refused, Unknown

log = logging.getLogger(__name__)

LEFT_ALONE = 30  # seconds, for a gallery that does not answer
MOST_HITS, MOST_PAIRS, LONGEST_FILTER = 200, 500, 10_000
KEPT = "private, max-age=300"  # views, by browsers: a file may become another
MOST_IDS = 100_000  # that are remembered
NO_SUCH = "there is no such picture in the gallery"
NAME = "name"  # in the metadata of a picture that was added here: what it was called
K = Annotated[int, Query(ge=1, le=MOST_HITS, description="How many to find.")]
Where = Annotated[
    str | None,
    Query(max_length=LONGEST_FILTER, description='Metadata that a hit must have, as JSON: `{"colour": ["red", "blue"]}`.'),
]
Notes = Annotated[
    str | None,
    Query(max_length=LONGEST_FILTER, description='Metadata that each of them gets, as JSON: `{"colour": "red"}`.'),
]


class Ids:
    """What pictures are called by outside: not by their paths. Those that were told last can be asked about."""

    def __init__(self) -> None:
        self._key, self._turn = secrets.token_bytes(32), threading.Lock()
        self._known: OrderedDict[str, str] = OrderedDict()

    def told(self, id: str) -> str:
        token = hmac.new(self._key, os.fsencode(id), "sha256").hexdigest()[:32]
        with self._turn:
            self._known[token] = id
            self._known.move_to_end(token)
            if len(self._known) > MOST_IDS:
                self._known.popitem(last=False)
        return token

    def asked(self, token: str) -> str:
        with self._turn:
            if token not in self._known:
                raise Unknown(NO_SUCH)
            return self._known[token]


class Size:
    """How many pictures a gallery has; while it does not answer, how many it had. Teaching goes on without it."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery, self._known, self._not_before = gallery, 0, 0.0
        self._turn = threading.Lock()

    def __call__(self) -> int:
        with self._turn:  # who comes while one waits for it need not wait as long again
            if time.monotonic() >= self._not_before:
                try:
                    self._known = len(self._gallery)
                except NotAnswering as error:
                    log.error("%s", error)
                    self._not_before = time.monotonic() + LEFT_ALONE
            return self._known


def add_search(app: FastAPI, gallery: Gallery, together: Together, drawing: Turns, folder: Path) -> None:
    """Routes below `/api/v1/gallery`. Views are made in turns of `drawing`; pictures that are added go to `folder`."""
    ids, looking = Ids(), threading.Lock()

    @app.post("/api/v1/gallery/search", openapi_extra=PICTURES)
    async def search(request: Request, k: K = 12, where: Where = None) -> answers.Hits:
        """What is most like a picture, or like all of several."""
        uploads, wanted = await uploads_in(request), filter_in(where)

        def act() -> answers.Hits:
            good, failures = seen_by(together, uploads)
            if failures:  # what is like all of them, nobody can say then
                raise Refused(f"{failures[0].name}: {failures[0].why}")
            return hits_of(gallery.search(np.stack([vector for _, vector in good]), k, wanted), ids)

        return await together.in_turn(act)

    @app.get("/api/v1/gallery/neighbours")
    async def neighbours(id: str, k: K = 12, where: Where = None) -> answers.Hits:
        """What is most like a picture of the gallery, itself left out."""
        wanted = filter_in(where)

        def act() -> answers.Hits:
            asked = ids.asked(id)
            check_there(gallery, asked)
            found = gallery.search(gallery.store.vector(asked), k + 1, wanted)
            return hits_of([hit for hit in found if hit.id != asked][:k], ids)

        return await run_in_threadpool(act)

    async def seen(id: str, longest: int) -> Response:
        """Only of what is in the gallery, and drawn anew: no other file, and nothing else of one, gets out."""
        asked = ids.asked(id)

        def act() -> bytes:
            check_there(gallery, asked)
            return drawn_file(asked, longest)

        return answer(await drawing(act), KEPT)

    @app.get("/api/v1/gallery/picture", response_class=Response, responses=A_PICTURE)
    async def picture(id: str) -> Response:
        """A picture of the gallery, where its file is still there: a JPEG of up to 1600 pixels a side, upright."""
        return await seen(id, LARGE)

    @app.get("/api/v1/gallery/thumbnail", response_class=Response, responses=A_PICTURE)
    async def thumbnail(id: str) -> Response:
        """A small view of a picture of the gallery: a JPEG of up to 256 pixels a side, upright."""
        return await seen(id, SMALL)

    @app.post("/api/v1/gallery/pictures", status_code=201, openapi_extra=PICTURES)
    async def add(request: Request, metadata: Notes = None) -> answers.AddedPictures:
        """More pictures for the gallery. Those that cannot be read are told."""
        uploads, notes = await uploads_in(request), notes_in(metadata)
        return await together.in_turn(lambda: added(gallery, together, folder, uploads, notes, ids))

    @app.get("/api/v1/gallery/duplicates")
    async def duplicates(similarity: Annotated[float, Query(ge=0.9, le=1)] = 0.98) -> answers.Duplicates:
        """Pairs that are nearly the same, the most similar first."""

        def act() -> answers.Duplicates:
            with looking:  # it goes through all of the gallery: one at a time
                pairs = gallery.duplicates(similarity)
            shown = [
                answers.Pair(
                    id=ids.told(one),
                    name=name_of(one, gallery.store.metadata(one)),
                    other=ids.told(other),
                    other_name=name_of(other, gallery.store.metadata(other)),
                    similarity=min(1.0, cosine),  # which single precision may take for more
                )
                for one, other, cosine in pairs[:MOST_PAIRS]
            ]
            return answers.Duplicates(pairs=shown, count=len(pairs))

        return await run_in_threadpool(act)


def filter_in(text: str | None) -> dict[str, Any] | None:
    """Values that are compared: what is within others cannot be asked for, and to find nothing would not tell so."""
    wanted = metadata_in(text)
    values = [each for value in (wanted or {}).values() for each in (value if isinstance(value, list) else [value])]
    if any(isinstance(each, (dict, list)) for each in values):
        raise Refused(
            'a filter compares texts, numbers, true, false and null, or a list of these: {"colour": ["red", "blue"]}'
        )
    return wanted


def notes_in(text: str | None) -> dict[str, Any]:
    """What is to be kept with pictures that are added."""
    notes = metadata_in(text) or {}
    if NAME in notes:
        raise Refused(f"metadata may have no {NAME!r}: it is what the file is called")
    return notes


def metadata_in(text: str | None) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        wanted = json.loads(text, parse_constant=float)
        encoded([wanted])  # as the gallery keeps it: no NaN, nothing that is no text
        json.dumps(wanted, ensure_ascii=False).encode()  # as it is answered: no half of a character
    except (ValueError, TypeError, RecursionError):
        wanted = None
    if not isinstance(wanted, dict):
        raise Refused('metadata must be a JSON object, such as {"colour": "red"}')
    return wanted


def hits_of(found: list[Hit], ids: Ids) -> answers.Hits:
    return answers.Hits(
        hits=[
            answers.Hit(id=ids.told(id), name=name_of(id, notes), similarity=min(1.0, cosine), metadata=tellable(notes))
            for id, cosine, notes in found
        ]
    )


def name_of(id: str, notes: dict[str, Any]) -> str:
    """As people know it: what it was called, or the name of its file."""
    name = notes.get(NAME)
    return printable(name if isinstance(name, str) else PurePosixPath(id.replace("\\", "/")).name)


def tellable(notes: dict[str, Any]) -> dict[str, Any]:
    """A gallery may keep halves of characters, from file names and from elsewhere; an answer cannot have them."""
    told: dict[str, Any] = json.loads(json.dumps(notes, ensure_ascii=False).encode(errors="replace"))
    return told


def check_there(gallery: Gallery, id: str) -> None:
    if id not in gallery:
        raise Unknown(NO_SUCH)


def added(
    gallery: Gallery, together: Together, folder: Path, uploads: list[Upload], notes: dict[str, Any], ids: Ids
) -> answers.AddedPictures:
    """Files first, then the gallery: what it names is there."""
    good, failures = seen_by(together, uploads)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder.absolute() / secrets.token_hex(12) for _ in good]
    try:
        for path, (upload, _) in zip(paths, good, strict=True):
            write_whole(path, upload.content)
        made = gallery.add(
            np.stack([vector for _, vector in good]),
            [str(path) for path in paths],
            [{**notes, NAME: upload.name} for upload, _ in good],
        )
    except BaseException as error:
        for path in paths:
            path.unlink(missing_ok=True)
        if isinstance(error, CannotKeep):
            raise Refused("the gallery cannot keep such metadata") from error
        raise
    return answers.AddedPictures(ids=[ids.told(id) for id in made.ids], failures=failures)
