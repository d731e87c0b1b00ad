"""`rankshot serve` as a process: it says its address, stops cleanly, and a kill loses nothing that was acknowledged."""

import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from functools import partial

import httpx
import pytest
from glyph_pictures import drawing

from rankshot.cli.main import main

# The first picture may find a server that is still importing, on a machine that has other things to do.
get, post = (partial(ask, timeout=60) for ask in (httpx.get, httpx.post))


@contextmanager
def process(rankshot, folder, *options):
    """The process, and its address."""
    command = rankshot("serve", "--port", 0, "--workspace", folder / "w", "--device", "cpu", *options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_from_nothing_to_a_recognised_drawing_and_a_clean_end(rankshot, tmp_path, number):
    with process(rankshot, tmp_path) as (server, address):
        made = post(f"{address}api/v1/classes", json={"name": "cross"}).json()["id"]
        post(f"{address}api/v1/classes/{made}/examples", files=[("pictures", drawing("cross", 1))])
        asked = post(f"{address}api/v1/classify", files=[("pictures", drawing("cross", 2))]).json()
        assert asked["answers"][0]["label"] == "cross"
        server.send_signal(number)
        assert server.wait(10) == 0
        assert server.stderr.read() == ""


@pytest.mark.slow
def test_a_gallery_and_a_classifier_that_are_there(rankshot, tmp_path):
    for shape in ("cross", "stairs"):
        for seed in (1, 2):
            path = tmp_path / "examples" / shape / f"{seed}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(drawing(shape, seed))
    examples, seen_by = str(tmp_path / "examples"), ["--model", "conv4-omniglot"]
    assert main(["gallery", "add", str(tmp_path / "g"), examples, *seen_by]) == 0
    assert main(["classify", examples, "--support", examples, "--save", str(tmp_path / "c"), *seen_by]) == 0
    with process(rankshot, tmp_path, "--gallery", tmp_path / "g", "--classifier", tmp_path / "c") as (_, address):
        state = get(f"{address}api/v1/state").json()
        assert (state["gallery"], [each["name"] for each in state["classes"]]) == (4, ["cross", "stairs"])
        asked = post(f"{address}api/v1/classify", files=[("pictures", drawing("stairs", 5))]).json()
        assert asked["answers"][0]["label"] == "stairs"


@pytest.mark.slow
def test_killed_in_the_middle_of_200_uploads(rankshot, tmp_path):
    """What was acknowledged is there again; what was not is there whole, or not at all."""
    acknowledged, picture = [], drawing("triangle", 3)
    with process(rankshot, tmp_path) as (server, address):
        made = post(f"{address}api/v1/classes", json={"name": "t"}).json()["id"]

        def upload(first):
            with suppress(httpx.HTTPError), httpx.Client(base_url=address, timeout=30) as client:
                for number in range(first, 200, 4):
                    files = [("pictures", (f"{number}.png", picture))]
                    acknowledged.extend(client.post(f"/api/v1/classes/{made}/examples", files=files).json()["ids"])
                    if len(acknowledged) == 60:
                        os.kill(server.pid, signal.SIGKILL)

        threads = [threading.Thread(target=upload, args=[first]) for first in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert 60 <= len(acknowledged) < 200
    with process(rankshot, tmp_path) as (_, address):
        (there,) = get(f"{address}api/v1/state").json()["classes"]
        ids = [each["id"] for each in there["examples"]]
        assert set(acknowledged) <= set(ids)
        assert len(ids) <= len(acknowledged) + 4
        for id in ids:
            assert get(f"{address}api/v1/examples/{id}/picture").content == picture


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--token", "short"], "a token must have 16 or more characters"),
        (["--certificate", "a.pem"], "https needs both --certificate and --key"),
        (["--port", "99999"], "port must be a whole number from 0 to 65,535, got 99999"),
        (["--host", "203.0.113.1"], "cannot listen on 203.0.113.1"),
        (["--model", "nothing"], "nothing"),
    ],
    ids=str,
)
def test_bad_input(options, message, capsys, tmp_path):
    assert main(["serve", "--workspace", str(tmp_path / "w"), "--device", "cpu", "--port", "0", *options]) == 1
    assert message in capsys.readouterr().err
