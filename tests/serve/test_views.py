"""Small views of examples and of the gallery: upright, without anything else of the file, and within the limits."""

import io
import struct
import zlib

import httpx
import numpy as np
import pytest
from camera_pictures import COLOURS, PLACE, photograph
from glyph_pictures import drawing
from PIL import Image

from rankshot import Gallery
from serving import running


def shown(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/jpeg"
    image = Image.open(io.BytesIO(answer.content))
    assert not image.getexif()
    assert PLACE.encode() not in answer.content
    return image


def taught(client, content):
    made = client.post("/api/v1/classes", json={"name": "x"}).json()["id"]
    files = {"pictures": ("a", content)}
    return client.post(f"/api/v1/classes/{made}/examples", files=files).json()["ids"][0]


def assert_upright(image):
    pixels = np.asarray(image).astype(float)
    for part, colour in zip((pixels[: len(pixels) // 4], pixels[-(len(pixels) // 4) :]), COLOURS["sunset"], strict=True):
        assert np.abs(part.mean((0, 1)) - colour).max() < 20


@pytest.mark.parametrize(("orientation", "size"), [(1, (1200, 800)), (6, (1200, 800)), (3, (800, 1200)), (8, (300, 900))])
def test_an_example(client, orientation, size):
    content = photograph("sunset", 1, size, orientation)
    id = taught(client, content)
    answer = client.get(f"/api/v1/examples/{id}/thumbnail")
    small = shown(answer)
    assert small.size == tuple(round(side * 256 / max(size)) for side in size)
    assert_upright(small)
    assert len(answer.content) < len(content) / 2
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get(f"/api/v1/examples/{id}/picture").content == content  # all of it, as it came


def test_what_browsers_do_not_show_and_what_is_small(client):
    file = io.BytesIO()
    Image.open(io.BytesIO(drawing("cross", 1))).save(file, "TIFF")
    image = shown(client.get(f"/api/v1/examples/{taught(client, file.getvalue())}/thumbnail"))
    assert image.size == (105, 105)


def test_of_nothing_else(client):
    for id in ("..", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "0" * 16, "%00"):
        answer = client.get(f"/api/v1/examples/{id}/thumbnail")
        assert answer.status_code == 404
        assert "root" not in answer.text


def bomb():
    """A PNG that says that it has ten thousand million pixels."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b"")


def test_a_gallery(handwriting, tmp_path):
    path = tmp_path / "photograph.jpg"
    path.write_bytes(photograph("sunset", 1, (3000, 2000), 8))
    with (
        Gallery(tmp_path / "gallery", handwriting) as gallery,
        running(handwriting, tmp_path / "w", gallery=gallery) as server,
        httpx.Client(base_url=server.address, timeout=30) as client,
    ):
        gallery.add([path])
        asked = {"pictures": photograph("sunset", 2)}
        id = client.post("/api/v1/gallery/search", files=asked).json()["hits"][0]["id"]
        for what, size in (("thumbnail", (256, 171)), ("picture", (1600, 1067))):
            image = shown(client.get(f"/api/v1/gallery/{what}", params={"id": id}))
            assert image.size == size
            assert_upright(image)
        for content in (bomb(), b"root:x:0:0", path.read_bytes()[:2000]):  # whatever the file may be by now
            path.write_bytes(content)
            for what in ("thumbnail", "picture"):
                answer = client.get(f"/api/v1/gallery/{what}", params={"id": id})
                assert answer.status_code == 404
                assert answer.json() == {"error": "its file is not there any more, or can no longer be read"}
