"""Inputs that are led by what code they reach: `python -m campaigns.guided image --seconds 60`. It takes atheris.

Begins with what lies in tests/campaigns/corpus and with files made by code; keeps what reaches something new below
runs/campaigns/guided. `--keep` puts the smallest of those into tests/campaigns/corpus, where a test tries them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "tests" / "campaigns" / "corpus"
FOLDER = Path("runs/campaigns/guided")
SEEDS = 200
KEPT = 30_000  # bytes of a target's corpus
LARGEST = {"image": 4096, "json": 2048, "archive": 4096, "tensors": 2048}  # bytes of an input


def seeds(target: str) -> list[bytes]:
    """To begin with: what the other campaign makes, and good ones of each."""
    chance = random.Random(target)
    if target == "image":
        from .image_files import encoded, hostile

        return [(encoded if number % 2 else hostile)(chance)[0] for number in range(SEEDS)]
    if target == "archive":
        from .archives import entries
        from .tars import hostile_tar
        from .zips import hostile_zip, zipped

        few = dict(list(entries(chance).items())[:2])
        made = [(hostile_zip if number % 2 else hostile_tar)(chance, "/canary")[0] for number in range(SEEDS // 4)]
        return [zipped(few), *made]
    good = {"parts": [{"name": "cat", "size": 7}], "share": 0.5, "shape": [1, 2, 3], "more": {"a": [None, True]}}
    if target == "json":
        return [json.dumps(good).encode(), json.dumps({**good, "share": None}).encode(), b"[]", b'"\\ud800"', b"1e999"]
    from numpy import zeros
    from safetensors.numpy import save

    header = b'{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    return [save({"x": zeros(2, "f4"), "y": zeros((1, 2), "i8")}), len(header).to_bytes(8, "little") + header + bytes(8)]


def keep(target: str) -> int:
    """The smallest inputs that have reached something new, as many as there is room for."""
    kept, size = CORPUS / target, 0
    kept.mkdir(parents=True, exist_ok=True)
    files = [file for file in (FOLDER / target).iterdir() if not file.name.startswith("seed-")]
    for file in sorted(files, key=lambda path: path.stat().st_size):
        size += file.stat().st_size
        if size > KEPT:
            break
        shutil.copy(file, kept / file.name)
    print(f"{kept}: {len(list(kept.iterdir()))} files")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m campaigns.guided", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("target", choices=list(LARGEST))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="put the smallest that were found beside the tests")
    options = parser.parse_args(arguments)
    if options.keep:
        return keep(options.target)
    try:
        atheris = importlib.import_module("atheris")  # not among what the project needs
    except ImportError:
        print("it takes atheris: pip install atheris", file=sys.stderr)
        return 1
    with atheris.instrument_imports(include=["rankshot", "PIL", "zipfile", "tarfile"]):
        from .guided_targets import TARGETS
    from PIL import Image

    Image.init()
    name = options.target
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds(name)):
        if len(content) <= LARGEST[name]:
            (folder / f"seed-{number}").write_bytes(content)
    kept = CORPUS / name
    kept.mkdir(parents=True, exist_ok=True)
    for file in kept.iterdir():
        shutil.copy(file, folder / file.name)
    settings = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", str(folder)]
    limits = ["-timeout=10", "-rss_limit_mb=2560", f"-max_len={LARGEST[name]}", f"-artifact_prefix={FOLDER}/{name}-"]
    atheris.Setup(["guided", *limits, *settings], TARGETS[name])
    atheris.Fuzz()  # which ends the process
    return 0


if __name__ == "__main__":
    sys.exit(main())
