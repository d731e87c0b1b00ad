"""Who may ask, and how much: every request passes here before anything looks at it.

A page of somebody else's, open in the same browser, can send requests to a server on this machine. So the Host must be one
of ours (a name that was made to lead here is none), and an Origin, which browsers add and pages cannot change, must be ours
too. From another machine a token is asked for.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CLOSE, WAITING = {"connection": "close"}, "/api/v1/changes"
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
PAGES = ("/", "/api")
DRAINED_SECONDS = 2.0
NO_TOKEN = "a token is asked for: open the address that the server has printed"
FORM = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>rankshot</title>
<h1>rankshot</h1>
<p>This server asks for a token. It was printed where the server was started, at the end of its address.</p>
<form action="/" method="get">
<label>Token <input name="token" type="password" autocomplete="off" required autofocus></label>
<button>Open</button>
</form>
</html>
"""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; media-src 'self' blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Limits:
    """Of one request, and of all together.

    body     bytes
    seconds  for a body to arrive
    at_once  requests; to one more it is said to come again
    waiting  requests that wait for a change
    """

    body: int = 64 * 2**20
    seconds: float = 30.0
    at_once: int = 64
    waiting: int = 256


class Guard:
    """An ASGI application around another.

    names  that this server may be called by, beside those of the machine itself; any IP address, where `token` is asked for
    token  that every request must show: as a cookie, or as `Authorization: Bearer`. None: nobody else can reach us
    cookie its name: browsers do not keep the cookies of two ports apart
    """

    def __init__(
        self,
        app: App,
        limits: Limits,
        names: frozenset[str] = LOCAL,
        token: str | None = None,
        cookie: str = "rankshot-token",
    ) -> None:
        self._app, self._limits, self._busy = app, limits, [0, 0]
        self._names, self._token, self._cookie = names, token, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if refused := self._refused(scope, headers):
            await _answer(send, *refused)
            return
        if self._token is not None and (shown := _token_in(scope)) is not None and _same(shown, self._token):
            secure = "; Secure" if scope.get("scheme") == "https" else ""
            cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict{secure}"
            await _answer(send, 303, "", {"location": "/", "set-cookie": cookie})
            return
        if self._token is not None and not self._is_known(headers):
            is_person = scope["path"] in PAGES and "text/html" in headers.get("accept", "")
            await (_ask_for_token(send) if is_person else _answer(send, 401, NO_TOKEN))
            return
        waits = scope["path"] == WAITING  # for a change, and takes nothing meanwhile
        if self._busy[waits] >= (self._limits.waiting if waits else self._limits.at_once):
            await _answer(send, 503, "too many requests at once: come again in a second", {"retry-after": "1"})
            return
        self._busy[waits] += 1
        try:
            if int(headers.get("content-length", "0")) > self._limits.body:
                if "expect" not in headers:  # who asks first sends nothing that we refuse
                    await _drained(receive, self._limits.body)
                await _answer(send, 413, _too_long(self._limits.body), CLOSE)
                return
            await self._passed_on(scope, receive, send)
        finally:
            self._busy[waits] -= 1

    def _refused(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 421, "this server is not called so"
        origin = headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return 403, "another page may not ask this server"
        is_page = scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/")  # a link may lead to it
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_page:
            return 403, "another page may not ask this server"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15:
            return 400, "how long the body is cannot be read"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._names:
            return True
        if self._token is None:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _is_known(self, headers: Mapping[str, str]) -> bool:
        assert self._token is not None
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie)
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        shown = [cookie] if cookie is not None else []
        shown += [bearer.strip()] if kind.lower() == "bearer" else []
        return any(_same(each, self._token) for each in shown)

    async def _passed_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        ends, seen, is_whole = loop.time() + self._limits.seconds, 0, False

        async def limited() -> Message:
            """What comes; too much or too late is an error, which the application answers as any other."""
            nonlocal seen, is_whole
            if is_whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, ends - loop.time()))
            except TimeoutError:
                raise HTTPException(408, "the body took too long to arrive", CLOSE) from None
            seen += len(message.get("body", b""))
            if seen > self._limits.body:
                if message.get("more_body", False):
                    await _drained(receive, self._limits.body)
                raise HTTPException(413, _too_long(self._limits.body), CLOSE)
            is_whole = not message.get("more_body", False)
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self._app(scope, limited, with_headers)


async def _drained(receive: Receive, most: int) -> None:
    """Read on, but not for long: who is still sending when the connection closes hears of a reset, and not our answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAINED_SECONDS):
            while most > 0:
                message = await receive()
                if not message.get("more_body", False):
                    return
                most -= len(message.get("body", b""))


def _token_in(scope: Scope) -> str | None:
    """That of the address which the server prints."""
    if scope["method"] != "GET":
        return None
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("token", [])), None)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


async def _answer(send: Send, status: int, error: str, more: Mapping[str, str] | None = None) -> None:
    await _send(send, status, json.dumps({"error": error}).encode(), {"content-type": "application/json", **(more or {})})


async def _ask_for_token(send: Send) -> None:
    """Who has come by an address without it: a page with a field for it."""
    await _send(send, 401, FORM.encode(), {"content-type": "text/html; charset=utf-8"})


async def _send(send: Send, status: int, body: bytes, more: Mapping[str, str]) -> None:
    headers = {**HEADERS, "content-length": str(len(body)), **more}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _too_long(most: int) -> str:
    size = f"{most / 2**20:.0f} MiB" if most >= 2**20 else f"{most} bytes"
    return f"a request may have {size} at most"
