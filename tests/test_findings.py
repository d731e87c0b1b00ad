"""What was found when rankshot was attacked, as a user meets it: with commands, files and public names alone.

Each test fails on the version it was found in. The tests of the parts (`Of finding N`) go further.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from disks import raised_by
from forked import COMMAND, CONTEXT, python
from pictures import class_folders, encoded, pixels, write
from PIL import Image
from processes import FOREGROUND

from rankshot.cli.main import main
from rankshot.gallery import FewShotClassifier, Gallery

TINY = "--filters 8 --batch-classes 4 --batch-size 32 --updates 2 --validation-episodes 5 --device cpu".split()
HANGS = 30  # seconds


def vectors(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)


def in_order(command, **options):
    """It ends by itself, with an answer or with a sentence; returns (exit code, what it printed, errors)."""
    done = subprocess.run(command, capture_output=True, timeout=HANGS, check=False, **options)
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")[-1500:]
    return done.returncode, done.stdout, done.stderr


def command_in_order(*arguments):
    """The same of a command, whose beginning does not matter."""
    done = python(COMMAND, *arguments)
    assert "Traceback" not in done.stderr, done.stderr[-1500:]
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory, trained):
    return shutil.copytree(trained, tmp_path_factory.mktemp("findings") / "run")


def test_1_a_folder_from_elsewhere_overwrites_nothing(run, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("evaluation.json", "report.html"):
        (run / f".{name}.partial").symlink_to(victim)
    try:
        assert main(["evaluate", str(run), "--episodes", "5"]) == 0
    finally:
        for name in ("evaluation.json", "report.html"):
            (run / f".{name}.partial").unlink(missing_ok=True)
    assert victim.read_text() == "mine"


def test_2_what_was_acknowledged_is_there(small_disk):
    """With room for a few pages more or less than an addition takes."""
    disk = small_disk("16m")
    count = 40_000

    def add():
        gallery.add(np.ones((count, 1), np.float32), [f"i{k}" for k in range(count)])

    needed = None
    for less in range(-1, 6):
        gallery = Gallery(disk / "g", dimensions=1)
        for number in range(60):
            gallery.add(np.ones((1, 1), np.float32), [f"{number}"])
        free = os.statvfs(disk).f_bavail
        if needed is not None:
            (disk / "filler").write_bytes(bytes((free - needed + less) * os.statvfs(disk).f_frsize))
        problem = raised_by(add)
        needed = free - os.statvfs(disk).f_bavail if needed is None else needed
        (disk / "filler").unlink(missing_ok=True)
        with Gallery.open(disk / "g") as again:
            assert len(again) == 60 + (0 if problem else count)
            again.add(np.ones((1, 1), np.float32), ["one more"])
        gallery.close()
        shutil.rmtree(disk / "g")


def _add(place, stop):
    with Gallery.open(place) as gallery:
        while not stop.is_set():
            gallery.add(vectors(200), metadata=[{"colour": "red"}] * 200)


def test_3_searching_while_another_process_adds(tmp_path):
    Gallery(tmp_path / "g", dimensions=8).add(vectors(20_000), metadata=[{"colour": "red"}] * 20_000)
    stop = CONTEXT.Event()
    other = CONTEXT.Process(target=_add, args=(tmp_path / "g", stop))
    with Gallery.open(tmp_path / "g") as gallery:
        other.start()
        try:
            began = len(gallery)
            while len(gallery) == began and other.is_alive():
                time.sleep(0.01)
            for turn in range(10):
                assert len(gallery.search(vectors(1, turn)[0], 5, {"colour": "red"})) == 5
        finally:
            stop.set()
            other.join()
    assert other.exitcode == 0


@pytest.mark.slow  # load; the test of finding 3 in tests/gallery/test_classifier.py has less of it
def test_3_threads_that_share_a_classifier(tmp_path):
    classifier = FewShotClassifier(rule="prototype").fit(vectors(40), np.arange(40) % 4)
    problems, is_over = [], threading.Event()

    def ask():
        try:
            while not is_over.is_set():
                answers = classifier.predict_proba(vectors(3))
                assert np.isfinite(answers).all()
        except Exception as error:
            problems.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    try:
        for each in threads:
            each.start()
        for _ in range(40):
            classifier.partial_fit(vectors(2), [7, 7])
            classifier.remove_class(7)
    finally:
        is_over.set()
        sys.setswitchinterval(before)
        for each in threads:
            each.join()
    assert problems == []


def test_4_two_writers_of_one_file(tmp_path):
    from rankshot.files import write_whole

    contents = [bytes([number]) * 2_000_000 for number in range(4)]
    problems = []

    def rewrite(content):
        try:
            for _ in range(10):
                write_whole(tmp_path / "a", content)
        except OSError as error:
            problems.append(error)

    threads = [threading.Thread(target=rewrite, args=(content,)) for content in contents]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert problems == []
    assert (tmp_path / "a").read_bytes() in contents


@pytest.mark.filterwarnings("ignore:.*fork")
def test_4_a_gallery_that_was_killed_while_it_was_created(tmp_path):
    """At each call that opens, makes or renames something in its folder."""
    for moment in range(40):
        place = tmp_path / str(moment)
        code = _killed(moment, place, lambda: Gallery(place, dimensions=8))  # noqa: B023
        try:
            gallery = Gallery.open(place)
        except FileNotFoundError:
            gallery = Gallery(place, dimensions=8)
        gallery.add(vectors(1), ["a"])
        if code == 0:
            break
    assert 1 < moment < 39


def _killed(moment, place, act):
    """A child that does something, and is gone at the call of this number; its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = moment

    def hook(event, told):
        nonlocal left
        if event in ("os.mkdir", "os.rename", "open", "sqlite3.connect") and str(place) in str(told[0]):
            left -= 1
            if left < 0:
                os._exit(9)

    sys.addaudithook(hook)
    act()
    os._exit(0)


@pytest.mark.slow
def test_5_a_pipe_and_a_device_among_the_pictures(tmp_path, rankshot):
    source = class_folders(tmp_path / "photos", classes=2, per_class=2)
    os.mkfifo(source / "c0" / "pipe.png")
    (source / "c1" / "zero.png").symlink_to("/dev/zero")
    code, _, errors = in_order(
        ["prlimit", f"--as={2**34}", *rankshot("gallery", "add", tmp_path / "g", source)],
    )
    assert code in (0, 1)
    assert b"pipe.png" in errors


def test_5_a_tar_that_claims_to_be_endless(tmp_path):
    archive = tmp_path / "images.tar"
    header = tarfile.TarInfo("photos/notes.txt")
    header.size = 2**60
    archive.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(10_240))
    code, _, errors = command_in_order("data", "prepare", archive, "--root", tmp_path / "root")
    assert (code, errors.count("\n")) == (1, 1)


@pytest.mark.slow  # the test of finding 5 in tests/data/test_decoding.py has it in threads
def test_5_a_picture_that_takes_gigabytes(tmp_path):
    """16 bits a pixel, just under the limit of pixels; all in black, so that the file is small."""
    Image.new("I;16", (8900, 8900)).save(tmp_path / "large.png", compress_level=1)
    code = (
        "import sys, resource; from rankshot.gallery import Embedder; embedder = Embedder('conv4-mini-imagenet')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: embedder([sys.argv[1]])\n"
        "except (OSError, ValueError) as error: pass\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    _, told, _ = in_order([sys.executable, "-c", code, tmp_path / "large.png"])
    assert int(told) < 1024


@pytest.mark.slow
def test_6_no_other_program_is_started(tmp_path):
    """A picture that holds PostScript: Pillow would hand it to Ghostscript."""
    marker = tmp_path / "started"
    (tmp_path / "bin").mkdir()
    for name in ("gs", "gswin32c", "gswin64c"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "cat.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
    )
    write(tmp_path / "dog.png")
    code = (
        "import sys; from rankshot.gallery import Embedder\n"
        "try: Embedder('conv4-mini-imagenet')([sys.argv[1]])\n"
        "except (OSError, ValueError) as error: print(error)"
    )
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    in_order([sys.executable, "-c", code, tmp_path / "cat.png"], env={**os.environ, "PATH": path})
    assert not marker.exists()


def test_7_one_flipped_bit(run, capsys):
    content = (run / "model.safetensors").read_bytes()
    code, errors = evaluated(run, "model.safetensors", content[:-9] + bytes([content[-9] ^ 4]) + content[-8:], capsys)
    assert (code, "model.safetensors" in errors) == (1, True)


def test_7_a_picture_that_was_changed_in_place(tmp_path, capsys):
    source = class_folders(tmp_path / "photos", classes=1, per_class=2)
    command = ["gallery", "add", str(tmp_path / "g"), str(source)]
    assert main(command) == 0
    (source / "c0" / "0.png").write_bytes(encoded(255 - pixels(50)))
    assert main(command) == 0
    assert "changed" in "".join(capsys.readouterr())


def evaluated(run, name, content, capsys):
    """(exit code, what was complained of) with a file of the run replaced."""
    before = (run / name).read_bytes()
    try:
        (run / name).write_bytes(content)
        return main(["evaluate", str(run), "--episodes", "5"]), capsys.readouterr().err
    finally:
        (run / name).write_bytes(before)


@pytest.mark.parametrize("told", [{"images": {"shape": "abc"}}, {"model": {"embedder": "x"}}], ids=["shape", "model"])
def test_8_settings_that_are_not_what_they_should_be(run, told, capsys):
    config = {**json.loads((run / "config.json").read_text()), **told}
    code, errors = evaluated(run, "config.json", json.dumps(config).encode(), capsys)
    assert (code, "config.json" in errors) == (1, True)


@pytest.mark.parametrize(
    ("name", "content"), [("config.json", b"[" * 100_000), ("metrics.jsonl", b'{"update": 1, "loss": [1]}\n')]
)
def test_8_json_that_is_none_of_ours(run, name, content, capsys):
    code, errors = evaluated(run, name, content, capsys)
    assert (code, name in errors) == (1, True)


@pytest.mark.parametrize(
    "option", [("--metric", f"precision@{10**21}"), ("--smoothing", "1e308")], ids=["metric", "smoothing"]
)
def test_8_numbers_that_no_setting_has(tmp_path, capsys, option):
    assert main(["train", "--run", str(tmp_path / "run"), *TINY, *option]) == 1
    assert capsys.readouterr().err.startswith("rankshot: ")


@pytest.mark.slow
def test_8_stopped_while_it_imports(rankshot):
    """Ctrl-C a little after it began, as somebody does who sees a mistake in what was typed."""
    for moment in (0.15, 0.3, 0.6, 1.0):
        process = subprocess.Popen(
            [*FOREGROUND, *rankshot("evaluate", "nowhere", "--help")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANGS)
        assert b"rankshot" not in errors or b"Traceback" not in errors, errors.decode()


def test_8_a_name_that_is_no_text_and_one_with_escape_codes(tmp_path):
    source = class_folders(tmp_path / "photos", classes=1, per_class=1)
    for name in (b"caf\xe9.png", b"\x1b[31mred.png"):
        Path(os.fsdecode(bytes(source / "c0") + b"/" + name)).write_bytes(encoded(pixels(1)))
    assert command_in_order("gallery", "add", tmp_path / "g", source)[0] == 0
    code, told, _ = command_in_order("search", "--gallery", tmp_path / "g", source / "c0" / "0.png")
    assert code == 0
    assert told.count(".png") >= 3
    assert "\x1b[31m" not in told
