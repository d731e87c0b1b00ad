"""What OpenAPI cannot find out by itself: bodies and answers that are files, and that a token is asked for."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

Responses = dict[int | str, dict[str, Any]]
FILE = {"type": "string", "format": "binary"}
PICTURES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["pictures"],
                    "properties": {"pictures": {"type": "array", "items": FILE}},
                }
            }
        },
    }
}
ZIP: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/zip": {"schema": FILE}}}}
A_PICTURE: Responses = {200: {"content": {"image/*": {"schema": FILE}}}}
A_ZIP: Responses = {200: {"content": {"application/zip": {"schema": FILE}}}}


def tell_of_token(app: FastAPI) -> None:
    """For those who read `openapi.json`; it is the guard that asks for it."""
    described = app.openapi()  # it is made once, and kept
    described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"token": []}]
