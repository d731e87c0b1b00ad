"""The page itself: a few files that come with the package, read once."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import Response

FOLDER = Path(__file__).parent / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


def add_page(app: FastAPI) -> None:
    """`/`, `/api`, which is about the API, and `/page/NAME` for what they need: these files and no others."""
    files = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in TYPES}

    def answer(name: str) -> Response:
        headers = {"cache-control": "no-cache"}
        return Response(files[name], media_type=TYPES[Path(name).suffix], headers=headers)

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return answer("index.html")

    @app.get("/api", include_in_schema=False)
    async def about_the_api() -> Response:
        return answer("reference.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        return answer(name) if name in files else Response(status_code=404)
