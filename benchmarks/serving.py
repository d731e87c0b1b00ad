"""`rankshot serve` under load, beside `Embedder` in batches: `python -m benchmarks.serving [--seconds 30]`.

Clients send pictures to `/api/v1/classify` of a real server on loopback for so long: 64 at once, and then 8 for the time of
an answer. Their requests are made beforehand: they share the server's cores. Into results/benchmarks/serving.json, with
what `Embedder` does with the same pictures in the same run, and how long it takes for one batch of all that 8 clients send.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from PIL import Image

from rankshot import Embedder
from rankshot.hardware import circumstances

from .measure import resident
from .places import FOLDER

CLIENTS, FEW, PICTURES, SEED, BOUNDARY = 64, 8, 256, 0, "boundary-of-pictures"
CASES = {"conv4-omniglot": (105, (1, 32)), "efficientnet-lite0": (256, (1,))}  # size of the pictures; how many a request


def pictures(size: int) -> list[bytes]:
    """Smooth colours with noise, as JPEG."""
    random, found = np.random.default_rng(SEED), []
    for _ in range(PICTURES):
        small = Image.fromarray(random.integers(0, 256, (5, 5, 3), dtype=np.uint8))
        noisy = np.asarray(small.resize((size, size))) + random.normal(0, 8, (size, size, 1))
        content = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(content, "JPEG", quality=90)
        found.append(content.getvalue())
    return found


def requests_of(some: list[bytes], a_request: int) -> list[bytes]:
    """Bodies of multipart/form-data with so many pictures each."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="pictures"; filename="picture.jpg"\r\n\r\n'.encode()
    parts = [head + picture + b"\r\n" for picture in some]
    end = f"--{BOUNDARY}--\r\n".encode()
    return [b"".join(parts[start : start + a_request]) + end for start in range(0, len(some), a_request)]


def asking(address: str, some: list[bytes], clients: int, a_request: int, seconds: float) -> dict[str, Any]:
    """So many clients, each with the next request when it has the answer to the last."""
    statuses: Counter[int] = Counter()
    times: list[float] = []
    bodies, place = requests_of(some, a_request), urlsplit(address).netloc
    ends = time.monotonic() + seconds

    def client(number: int) -> None:
        connection = http.client.HTTPConnection(place, timeout=60)
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        with closing(connection):
            for turn in count(number):
                if time.monotonic() >= ends:
                    break
                start = time.monotonic()
                connection.request("POST", "/api/v1/classify", bodies[turn % len(bodies)], headers)
                answer = connection.getresponse()
                answer.read()
                statuses[answer.status] += 1
                if answer.status == 200:
                    times.append(time.monotonic() - start)
                else:
                    time.sleep(float(answer.headers.get("retry-after", 1)))

    threads = [threading.Thread(target=client, args=[number]) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return {
        "clients": clients,
        "pictures_a_request": a_request,
        "pictures_a_second": len(times) * a_request / seconds,
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "p50_ms": 1e3 * statistics.median(times),
        "p95_ms": 1e3 * statistics.quantiles(times, n=20)[-1],
    }


def rate_of(embedder: Embedder, some: list[bytes], seconds: float) -> float:
    """Pictures a second, in batches of all of them."""
    done, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        embedder(some)
        done += len(some)
    return done / (time.monotonic() - start)


def batch_of(embedder: Embedder, some: list[bytes]) -> dict[str, float]:
    """How long one batch takes."""
    times = []
    for _ in range(20):
        start = time.monotonic()
        embedder(some)
        times.append(time.monotonic() - start)
    return {"pictures": len(some), "ms": 1e3 * statistics.median(times)}


def measured(model: str, size: int, amounts: tuple[int, ...], seconds: float) -> dict[str, Any]:
    some, embedder = pictures(size), Embedder(model)
    embedder(some)
    rates = [rate_of(embedder, some, seconds / 3)]  # and again at the end: a machine is not always as fast
    with tempfile.TemporaryDirectory(prefix="rankshot-serving-") as folder:
        command = [sys.executable, "-m", "rankshot", "serve", "--port", "0", "--workspace", f"{folder}/w", "--model", model]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            try:
                for number in range(5):
                    made = httpx.post(f"{address}api/v1/classes", json={"name": str(number)}).json()["id"]
                    files = [("pictures", some[number])]
                    httpx.post(f"{address}api/v1/classes/{made}/examples", files=files, timeout=60)
                results: dict[str, Any] = {"picture_size": size, "many": [], "few": []}
                asking(address, some, FEW, 1, 2)  # warm
                memory = [resident("VmRSS", server.pid)]
                for a_request in amounts:
                    results["many"].append(asking(address, some, CLIENTS, a_request, seconds))
                    memory.append(resident("VmRSS", server.pid))
                for a_request in amounts:
                    results["few"].append(asking(address, some, FEW, a_request, seconds / 3))
                    memory.append(resident("VmRSS", server.pid))
                state = httpx.get(f"{address}api/v1/state").json()
                results["examples"] = sum(len(each["examples"]) for each in state["classes"])
            finally:
                server.terminate()
    results["server_memory_bytes"] = memory
    rates.append(rate_of(embedder, some, seconds / 3))
    rate, batches = statistics.mean(rates), [batch_of(embedder, some[: FEW * a_request]) for a_request in amounts]
    results["embedder"] = {"pictures_a_second": rate, "each": rates, "batches": batches}
    results["share_of_embedder"] = [each["pictures_a_second"] / rate for each in results["many"]]
    results["p95_of_batch"] = [few["p95_ms"] / batch["ms"] for few, batch in zip(results["few"], batches, strict=True)]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--to", type=Path, default=FOLDER / "serving.json")
    options = parser.parse_args()
    found = {model: measured(model, size, amounts, options.seconds) for model, (size, amounts) in CASES.items()}
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(
        json.dumps({**circumstances(SEED), "seconds": options.seconds, "networks": found}, indent=1) + "\n"
    )
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
