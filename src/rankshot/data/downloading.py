"""What may be downloaded is, and checked: a file that is not the known one is not used."""

from __future__ import annotations

import hashlib
import logging
import urllib.request
from pathlib import Path
from urllib.error import URLError

from rankshot.files import opened, replacing, write_all

from .listing import advised

log = logging.getLogger(__name__)

OMNIGLOT = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"
OMNIGLOT_MD5 = {
    "images_background.zip": "68d2efa1b9178cc56df9314c21c6e718",
    "images_evaluation.zip": "6b91aef0f799c5bb55b94e3f2daec811",
}
TIMEOUT = 30


def download_omniglot(folder: Path) -> list[Path]:
    """Both official zips, from the official place."""
    from .omniglot import HOW

    try:
        return [download(OMNIGLOT + name, folder / name, md5) for name, md5 in OMNIGLOT_MD5.items()]
    except URLError as error:
        message = f"omniglot is not prepared yet, and cannot be downloaded: {error.reason}."
        raise advised(FileNotFoundError(message), HOW) from None


def download(url: str, path: Path, md5: str) -> Path:
    """Into `path`, once; a file that lies there and is the right one is not fetched again."""
    if path.is_file() and _md5(path) == md5:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    log.info("downloading %s", url)
    digest = hashlib.md5(usedforsecurity=False)
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response, replacing(path) as file:
        while chunk := response.read(2**20):
            write_all(file, chunk)
            digest.update(chunk)
        if digest.hexdigest() != md5:
            raise ValueError(f"{url} is not what it should be: its md5 is {digest.hexdigest()} instead of {md5}")
    return path


def _md5(path: Path) -> str:
    with opened(path, follow=True) as file:
        return hashlib.file_digest(file, "md5").hexdigest()
