"""Downloads from a real server: checked, kept, and never half there."""

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rankshot.data import downloading


class Quiet(SimpleHTTPRequestHandler):
    requests = 0

    def do_GET(self):
        type(self).requests += 1
        super().do_GET()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file.zip").write_bytes(b"content" * 1000)
    Quiet.requests = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "served"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


MD5 = hashlib.md5(b"content" * 1000).hexdigest()


def test_once_and_checked(server, tmp_path):
    path = tmp_path / "deep" / "file.zip"
    assert downloading.download(server + "file.zip", path, MD5) == path
    assert path.read_bytes() == b"content" * 1000
    downloading.download(server + "file.zip", path, MD5)
    assert Quiet.requests == 1
    path.write_bytes(b"cut short")
    downloading.download(server + "file.zip", path, MD5)
    assert path.read_bytes() == b"content" * 1000


def test_not_what_it_should_be(server, tmp_path):
    with pytest.raises(ValueError, match=r"file.zip is not what it should be: its md5 is"):
        downloading.download(server + "file.zip", tmp_path / "file.zip", "0" * 32)
    assert [each.name for each in tmp_path.iterdir()] == ["served"]


def test_omniglot_from_another_place(server, tmp_path, monkeypatch):
    """The whole way, with the zips that the official place would give."""
    for name in downloading.OMNIGLOT_MD5:
        (tmp_path / "served" / name).write_bytes(name.encode())
    md5 = {name: hashlib.md5(name.encode()).hexdigest() for name in downloading.OMNIGLOT_MD5}
    monkeypatch.setattr(downloading, "OMNIGLOT", server)
    monkeypatch.setattr(downloading, "OMNIGLOT_MD5", md5)
    paths = downloading.download_omniglot(tmp_path / "downloads")
    assert [path.read_bytes().decode() for path in paths] == list(md5)


def test_not_there(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "OMNIGLOT", server)
    with pytest.raises(FileNotFoundError, match=r"cannot be downloaded: .*Not Found|File not found"):
        downloading.download_omniglot(tmp_path / "downloads")
