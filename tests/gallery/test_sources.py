"""Files by their plain paths, and whether they have changed."""

import os

import numpy as np
import pytest

from rankshot.gallery.sources import has_changed, id_of, source_of


@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("a.jpg", "a.jpg"),
        ("./a//b.jpg", "a/b.jpg"),
        ("a/../b.jpg", "b.jpg"),
        ("/x/./y.jpg", "/x/y.jpg"),
        ("caf\udce9", "caf\udce9"),
    ],
)
def test_plain_paths(path, id, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    assert id_of(path) == id
    assert id_of(np.zeros(3)) is None


def test_behind_a_link_two_dots_lead_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    assert id_of("link/../b.jpg") == "link/../b.jpg"


def test_changed_by_content_and_not_by_time_alone(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"one")
    before = source_of(path)
    assert not has_changed(path, before)
    os.utime(path, ns=(1, 1))
    assert not has_changed(path, before)
    path.write_bytes(b"two")
    assert has_changed(path, before)
    path.unlink()
    assert not has_changed(path, before)
    assert source_of(path) is None


def test_a_pipe_has_no_content(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    assert source_of(tmp_path / "pipe.jpg") is None
