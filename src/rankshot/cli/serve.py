"""`rankshot serve`."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rankshot.gallery import Embedder, FewShotClassifier, Gallery
from rankshot.serve.server import Place, Server
from rankshot.terminal import say

from .messages import HANDWRITING
from .parsing import Device, Files, parsed


@dataclass(frozen=True)
class Options:
    """Teach and recognise in a browser: a page and an API on this machine.

    With nothing given it is about handwriting: draw a character or two, and it knows them again. For photographs:
    rankshot serve --model strongest
    """

    workspace: Path = Path("rankshot-workspace")
    """Folder where everything is kept that is taught; made where there is none."""
    model: str | None = None
    """What pictures are seen by: a run folder, the name of weights, or 'strongest', for photographs. None: the gallery's
    network, or the classifier's, or conv4-omniglot, for handwriting."""
    gallery: str | None = None
    """To search in: folder, faiss:FOLDER, NAME.db or http://host:19530/NAME of a gallery (see: rankshot gallery add)."""
    classifier: Path | None = None
    """Folder of a classifier that was taught before, as --save of classify writes it: a new workspace begins with it."""
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
    with ExitStack() as held:
        gallery = taught = None
        if options.gallery is not None:
            gallery = held.enter_context(Gallery.open(options.gallery, options.model, device=options.device))
        if options.classifier is not None:
            taught = FewShotClassifier.from_pretrained(options.classifier, device=options.device)
        server = Server(seen_by(options, gallery, taught), options.workspace, place, gallery=gallery, taught=taught)
        say(server.address_with_token, f"what is taught is kept in {options.workspace}; Ctrl-C stops")
        if taught is not None and not server.has_taken_in:
            say(f"{options.workspace} has classes already: {options.classifier} was not taken in (its network is used)")
        if options.open:
            webbrowser.open(server.address_with_token)
        server.run()
    return 0


def seen_by(options: Options, gallery: Gallery | None, taught: FewShotClassifier | None) -> Embedder:
    """The network of the gallery, which --model has been compared with; or of --model; or of the classifier."""
    if gallery is not None:
        return gallery.embedder
    if options.model is None and taught is not None:
        if not isinstance(taught.embedder, Embedder):
            raise ValueError(f"{options.classifier} was taught with vectors, and has no network to see pictures by")
        return taught.embedder
    return Embedder(options.model or HANDWRITING, device=options.device)
