"""Who may ask, and how much: every line with a real request."""

import socket
import threading
import time
from contextlib import suppress

import httpx
import pytest
from glyph_pictures import drawing

from rankshot.serve import server, together
from rankshot.serve.guard import DRAINED_SECONDS, Limits
from rankshot.serve.server import Place
from serving import running

TOKEN = "sixteen-or-more-characters"


def raw(server, text):
    """The first line of the answer to what is sent byte by byte as it is."""
    host, port = server.address.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(text)
        return connection.recv(4096).split(b"\r\n")[0].decode()


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "10.1.2.3", "[::1", "localhost@evil.example"]
)
def test_a_name_that_leads_here_but_is_not_ours(untouched, host):
    answer = untouched.get("/api/v1/state", headers={"host": host})
    assert answer.status_code in (400, 421)
    assert "classes" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:80", "LOCALHOST"])
def test_our_own_names(untouched, host):
    assert untouched.get("/api/v1/state", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[", ""])
def test_another_page_may_not_ask(untouched, origin):
    answer = untouched.post("/api/v1/classes", json={"name": "x"}, headers={"origin": origin})
    assert (answer.status_code, answer.json()) == (403, {"error": "another page may not ask this server"})
    for site in ("cross-site", "same-site"):
        assert untouched.post("/api/v1/undo", headers={"sec-fetch-site": site}).status_code == 403
        assert untouched.get("/api/v1/changes", headers={"sec-fetch-site": site}).status_code == 403  # nor keep us busy
        assert untouched.get("/", headers={"sec-fetch-site": site}).status_code == 200  # a link may lead here
    assert untouched.get("/api/v1/state").json()["revision"] == 0


def test_our_own_page_may(client):
    origin = str(client.base_url).rstrip("/")
    assert client.post("/api/v1/classes", json={"name": "x"}, headers={"origin": origin}).status_code == 201


def test_a_token_where_one_is_asked_for(serve):
    with serve(Place(port=0, token=TOKEN)) as client:
        named = f"rankshot-token-{client.base_url.port}"
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"cookie": f"{named}=wrong"},
            {"authorization": TOKEN},
        ):
            answer = client.get("/api/v1/state", headers=headers)
            assert (answer.status_code, TOKEN in answer.text) == (401, False)
        assert client.get("/?token=wrong").status_code == 401
        form = client.get("/", headers={"accept": "text/html,*/*"})
        assert (form.status_code, form.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert '<input name="token" type="password"' in form.text
        assert TOKEN not in form.text
        assert (
            client.get("/api/v1/state", headers={"accept": "text/html"}).json()["error"].startswith("a token is asked for")
        )
        assert client.get("/api/v1/state", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.server.address_with_token.endswith(f"/?token={TOKEN}")
        first = client.get("/", params={"token": TOKEN})
        assert (first.status_code, first.headers["location"]) == (303, "/")
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert client.get("/api/v1/state").status_code == 200  # the client has kept the cookie
        odd = {"cookie": f'prefs={{"a": 1}}; {named}={TOKEN}'}
        assert httpx.get(f"{client.base_url}api/v1/state", headers=odd).status_code == 200
        for path in ("//evil.example/", "/%0d%0aX-Evil:1", "/%E2%82%AC"):
            assert httpx.get(f"{str(client.base_url).rstrip('/')}{path}?token={TOKEN}").headers["location"] == "/"
        assert client.get("/api/v1/state", headers={"host": "192.168.1.7:8000"}).status_code == 200
        assert client.get("/api/v1/state", headers={"host": "evil.example"}).status_code == 421


def test_places():
    assert Place().is_local
    assert Place("::1").is_local
    assert not Place("0.0.0.0").is_local
    for token in ("short", "correct horse battery staple", 'sixteen;or"more,characters', "x" * 201):
        with pytest.raises(ValueError, match="16 or more characters, of letters, digits and"):
            Place(token=token)
    with pytest.raises(ValueError, match="https needs both"):
        Place(certificate="a.pem")


def test_from_elsewhere_a_token_is_made(handwriting, tmp_path):
    with running(handwriting, tmp_path, Place("0.0.0.0", 0)) as server:
        assert len(server.token) >= 32


def test_bodies_that_are_too_large(serve):
    with serve(limits=Limits(body=10_000)) as client:
        client.post("/api/v1/classes", json={"name": "x"})
        said = client.post("/api/v1/classify", files=[("pictures", bytes(20_000))])
        assert (said.status_code, said.json()) == (413, {"error": "a request may have 10000 bytes at most"})

        def chunks():
            yield b'--x\r\nContent-Disposition: form-data; name="pictures"; filename="a"\r\n\r\n'
            for _ in range(30):
                yield bytes(1000)

        def slowly():
            for part in chunks():
                yield part
                time.sleep(0.01)  # still sending when the server has had enough

        headers = {"content-type": "multipart/form-data; boundary=x"}
        for sent in (chunks, slowly):
            began = time.monotonic()
            unsaid = client.post("/api/v1/classify", content=sent(), headers=headers)
            assert unsaid.status_code == 413
            assert time.monotonic() - began < DRAINED_SECONDS  # nothing is waited for that does not come
        asks = b"POST /api/v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\nExpect: 100-continue\r\n\r\n"
        assert raw(client.server, asks).startswith("HTTP/1.1 413")
        assert "400" in raw(client.server, b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n")
        assert client.get("/api/v1/state").status_code == 200


def test_a_client_that_never_ends(serve):
    with serve(limits=Limits(seconds=0.5)) as client:
        start = time.monotonic()
        head = b"POST /api/v1/classes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        assert "408" in raw(client.server, head + b"Content-Type: application/json\r\n\r\n{")
        assert time.monotonic() - start < 5
        assert client.get("/api/v1/state").status_code == 200


def test_connections_that_ask_nothing_are_closed(client, monkeypatch):
    monkeypatch.setattr(server, "IDLE", 0.3)
    host, port = client.base_url.host, client.base_url.port
    for start in (b"", b"GET / HT"):
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(start)
            assert connection.recv(100) == b""


def test_who_has_gone_is_not_waited_for(serve):
    with serve(limits=Limits(waiting=1)) as client:
        host, port = client.base_url.host, client.base_url.port
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(b"GET /api/v1/changes?since=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: client.get("/api/v1/changes?since=-5").status_code == 503)
        until(lambda: client.get("/api/v1/changes?since=-5").status_code == 200)
        assert client.get("/api/v1/state").status_code == 200


def until(true, seconds=10):
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_it_stops_while_pictures_are_decoded(serve, monkeypatch):
    """What comes too late is told so; nobody waits for ever."""
    slow, begun = together.pixels_of, threading.Event()

    def decoded(*arguments):
        begun.set()
        time.sleep(1)
        return slow(*arguments)

    with serve() as client:
        made = client.post("/api/v1/classes", json={"name": "cross"}).json()["id"]
        client.post(f"/api/v1/classes/{made}/examples", files=[("pictures", drawing("cross", 1))])
        monkeypatch.setattr(together, "pixels_of", decoded)
        many = [("pictures", drawing("cross", 2))] * 8
        asking = threading.Thread(target=ask_in_vain, args=[f"{client.base_url}api/v1/classify"], kwargs={"files": many})
        asking.start()
        begun.wait(10)
        start = time.monotonic()
    assert time.monotonic() - start < 15
    asking.join(15)
    assert not asking.is_alive()


def test_too_many_at_once_are_asked_to_come_again(serve):
    with serve(limits=Limits(waiting=2)) as client:
        revision = client.get("/api/v1/state").json()["revision"]
        url = f"{client.base_url}api/v1/changes?since={revision}"
        waiting = [threading.Thread(target=ask_in_vain, args=[url]) for _ in "ab"]
        for each in waiting:
            each.start()
        deadline = time.monotonic() + 10
        while (answer := client.get("/api/v1/changes?since=-5")).status_code == 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        client.server.stop()  # which ends those that wait
        for each in waiting:
            each.join()


def ask_in_vain(url, **sent):
    with suppress(httpx.HTTPError):  # of a server that stops meanwhile
        httpx.request("POST" if sent else "GET", url, timeout=30, **sent)


def test_headers_of_every_answer(client):
    for path in ("/", "/api/v1/state", "/nothing", "/api/v1/examples/x/picture"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_requests_that_come_together_are_embedded_together(client):
    made = client.post("/api/v1/classes", json={"name": "cross"}).json()["id"]
    client.post(f"/api/v1/classes/{made}/examples", files=[("pictures", drawing("cross", 1))])
    batches = client.server._together
    batches.batches.clear()
    with httpx.Client(base_url=client.base_url, timeout=30) as many:
        asking = [
            threading.Thread(target=lambda: many.post("/api/v1/classify", files=[("pictures", drawing("cross", 2))] * 8))
            for _ in range(12)
        ]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
    assert sum(batches.batches) == 96
    assert len(batches.batches) < 96
