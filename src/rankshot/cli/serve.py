"""`rankshot serve`."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rankshot.gallery import Embedder
from rankshot.serve.server import Place, Server
from rankshot.terminal import say

from .parsing import Device, Files, parsed


@dataclass(frozen=True)
class Options:
    """Teach and recognise in a browser: a page and an API on this machine.

    With nothing given it is about handwriting: draw a character or two, and it knows them again. For photographs:
    rankshot serve --model strongest
    """

    workspace: Path = Path("rankshot-workspace")
    """Folder where everything is kept that is taught; made where there is none."""
    model: str = "conv4-omniglot"
    """What pictures are seen by: a run folder, the name of weights, or 'strongest', for photographs."""
    host: str = "127.0.0.1"
    """Where to listen. Another than this machine's own address asks everyone for a token."""
    port: int = 8000
    """0: one that is free."""
    token: str | None = None
    """That everyone must show. None: a new one, where one is asked for."""
    certificate: Path | None = None
    """For https: a file with the certificate. Browsers allow a camera only on this machine or over https."""
    key: Path | None = None
    """For https: a file with the key of the certificate."""
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Open the page in a browser."""
    load: Files = ()
    device: Device = "auto"


def main(arguments: Sequence[str]) -> int:
    options = parsed(Options, arguments, "serve")
    place = Place(options.host, options.port, options.token, options.certificate, options.key)
    server = Server(Embedder(options.model, device=options.device), options.workspace, place)
    say(f"{server.address_with_token}", f"what is taught is kept in {options.workspace}; Ctrl-C stops")
    if options.open:
        webbrowser.open(server.address_with_token)
    server.run()
    return 0
