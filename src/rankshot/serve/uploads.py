"""Pictures of a request. The names that they have are names, and never paths of this machine."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, NamedTuple

from fastapi import Request
from starlette.datastructures import UploadFile

from .workspace import Refused

MOST_PICTURES, MOST_PICTURE_BYTES, LONGEST_NAME = 256, 32 * 2**20, 100  # in a request; of each
PICTURES: dict[str, Any] = {  # as OpenAPI has it
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["pictures"],
                    "properties": {"pictures": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            }
        },
    }
}


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


def _name(file: UploadFile, number: int) -> str:
    name = PurePosixPath((file.filename or "").replace("\\", "/")).name
    return "".join(each for each in name if each.isprintable())[:LONGEST_NAME] or f"picture {number}"
