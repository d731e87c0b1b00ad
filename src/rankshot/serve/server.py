"""The server as a whole: from options to a process that answers until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import re
import secrets
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rankshot.data.decoding import Undecodable
from rankshot.gallery.classifier import FewShotClassifier
from rankshot.gallery.embedder import Embedder
from rankshot.gallery.gallery import Gallery
from rankshot.limits import whole

from .api import application
from .described import tell_of_token
from .guard import LOCAL, Guard, Limits
from .page_files import add_page
from .taking_along import take_in
from .together import Together
from .workspace import Refused, Vector, Workspace

TOKEN = re.compile("[A-Za-z0-9._~-]{16,200}")  # which cookies and addresses take as they are
MOST_CONNECTIONS = 512
GRACE = 2  # seconds for what is being answered when it is told to stop
IDLE = 10  # seconds until a connection must have brought a request


@dataclass(frozen=True)
class Place:
    """Where a server listens, and who may come.

    token              asked for from everyone; None: from nobody, which only the machine itself may be
    certificate, key   files, for https
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("https needs both --certificate and --key")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise FileNotFoundError(f"{file} is not there: --certificate and --key are files")
        whole("port", self.port, 0, 65535)
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise ValueError("a token must have 16 or more characters, of letters, digits and -._~")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class Server:
    """Listens from the moment that it is made; `run` answers until Ctrl-C, SIGTERM, or `stop`."""

    def __init__(
        self,
        embedder: Embedder,
        workspace: str | Path,
        place: Place,
        limits: Limits | None = None,
        gallery: Gallery | None = None,
        taught: FewShotClassifier | None = None,
    ) -> None:
        self._held = ExitStack()
        try:
            self.token = place.token or (None if place.is_local else secrets.token_urlsafe(24))
            self._socket = self._held.enter_context(_listening(place))
            self._together = Together(embedder)
            self._held.callback(self._together.close)
            self._workspace = Workspace(workspace, embedder.fingerprint, self._embedded)
            self._held.callback(self._workspace.close)
            self.has_taken_in = taught is not None and not self._workspace.revision  # one that is there goes on as it is
            if taught is not None and self.has_taken_in:
                take_in(self._workspace, self._together, taught)
            app = application(self._workspace, self._together, gallery)
            add_page(app)
            if self.token is not None:
                tell_of_token(app)
            names, port = LOCAL | {place.host.lower(), socket.gethostname().lower()}, self._socket.getsockname()[1]
            guard = Guard(app, limits or Limits(), names, self.token, f"rankshot-token-{port}")
            self._server = Quiet(_config(guard, place), app.state.changed.ring)
        except BaseException:
            self._held.close()
            raise
        host = socket.gethostname() if place.host in ("0.0.0.0", "::") else place.host
        host = f"[{host}]" if ":" in host else host
        self.address = f"{'https' if place.certificate else 'http'}://{host}:{port}/"

    @property
    def address_with_token(self) -> str:
        return self.address if self.token is None else f"{self.address}?token={self.token}"

    def run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._held.close()

    def stop(self) -> None:
        self._server.should_exit = True

    def _embedded(self, pictures: Sequence[bytes]) -> list[Vector]:
        """Of examples that are there already, by another network than before."""
        found = self._together(pictures)
        if unreadable := [each for each in found if isinstance(each, Undecodable)]:
            raise Refused(f"an example cannot be seen by this network: {unreadable[0]}")
        return [each for each in found if not isinstance(each, Undecodable)]


class Impatient(H11Protocol):
    """Who connects and asks nothing is not waited for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(IDLE, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


class Quiet(uvicorn.Server):
    """It stops when it is told to, and leaves it at that; who waits for a change is told first."""

    def __init__(self, config: uvicorn.Config, wake: Callable[[], None]) -> None:
        super().__init__(config)
        self._wake = wake

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._wake()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listening(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=128)
    except OSError as error:
        hint = ": --port 0 takes one that is free" if error.errno == errno.EADDRINUSE else ""
        raise OSError(f"cannot listen on {place.host}, port {place.port}: {error.args[-1]}{hint}") from None


def _config(app: Guard, place: Place) -> uvicorn.Config:
    try:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            proxy_headers=False,
            timeout_keep_alive=IDLE,
            limit_concurrency=MOST_CONNECTIONS,
            http=Impatient,
            ws="none",
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=place.certificate,
            ssl_keyfile=place.key,
        )
        config.load()
    except ssl.SSLError:
        raise ValueError(f"{place.certificate} and {place.key} are no certificate with its key") from None
    return config
