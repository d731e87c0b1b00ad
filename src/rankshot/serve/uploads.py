"""Pictures of a request. The names that they have are names, and never paths of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from fastapi import Request
from starlette.datastructures import UploadFile

from rankshot.data.decoding import Undecodable
from rankshot.terminal import printable

from . import answers
from .together import Together
from .workspace import LONGEST_NAME, Refused, Vector

MOST_PICTURES, MOST_PICTURE_BYTES = 256, 32 * 2**20  # in a request; of each


class Upload(NamedTuple):
    """A file of a request: what it is called there, and its bytes."""

    name: str
    content: bytes


async def uploads_in(request: Request) -> list[Upload]:
    """The files in the fields `pictures`."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Refused("give pictures as multipart/form-data, each in a field 'pictures'")
    async with request.form(max_files=MOST_PICTURES, max_fields=10) as form:
        files = [each for each in form.getlist("pictures") if isinstance(each, UploadFile)]
        if not files:
            raise Refused("there is no picture in the request: give each in a field 'pictures'")
        if any((file.size or 0) > MOST_PICTURE_BYTES for file in files):
            raise Refused(f"a picture may have {MOST_PICTURE_BYTES} bytes")
        return [Upload(_name(file, number), await file.read()) for number, file in enumerate(files, 1)]


def seen_by(together: Together, uploads: Sequence[Upload]) -> tuple[list[tuple[Upload, Vector]], list[answers.Failure]]:
    """Those that can be read with their embeddings, and the others; where none can, that is an error."""
    seen = list(zip(uploads, together([upload.content for upload in uploads]), strict=True))
    good = [(upload, vector) for upload, vector in seen if not isinstance(vector, Undecodable)]
    failures = [answers.Failure(name=upload.name, why=str(why)) for upload, why in seen if isinstance(why, Undecodable)]
    if not good:
        raise Refused(f"{failures[0].name}: {failures[0].why}")
    return good, failures


def _name(file: UploadFile, number: int) -> str:
    name = PurePosixPath((file.filename or "").replace("\\", "/")).name
    return printable(name)[:LONGEST_NAME] or f"picture {number}"
