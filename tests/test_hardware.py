"""Records say what computed, and by which code."""

import subprocess

import pytest

from rankshot import hardware


def git(folder, *arguments):
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    done = subprocess.run(["git", "-C", folder, *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The module as if it lay in a folder of its own."""
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "hardware.py").write_text("as it was\n")
    monkeypatch.setattr(hardware, "__file__", str(folder / "hardware.py"))
    monkeypatch.delenv("COMMIT", raising=False)
    return folder


def test_commit(source, monkeypatch):
    assert hardware.commit() is None  # no repository
    git(source.parent, "init", "--quiet")
    assert hardware.commit() is None  # a repository, but not of this file
    git(source.parent, "add", "src")
    git(source.parent, "commit", "--quiet", "-m", "all")
    head = git(source.parent, "rev-parse", "HEAD")
    (source.parent / "notes.txt").write_text("beside the source")
    assert hardware.commit() == head
    (source / "hardware.py").write_text("changed\n")
    assert hardware.commit() == f"{head}+changes"
    monkeypatch.setenv("COMMIT", "abc")
    assert hardware.commit() == "abc"
    monkeypatch.delenv("COMMIT")
    monkeypatch.setenv("PATH", str(source))
    assert hardware.commit() is None  # no git at all


def test_hardware():
    assert hardware.hardware()
