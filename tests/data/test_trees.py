"""A folder, a zip and a tar file of the same files are read alike; what is dangerous or damaged is named."""

import io
import os
import tarfile
import time
import zipfile

import pytest
from pictures import deep_folder

from rankshot.data import trees
from rankshot.data.trees import open_tree

FILES = {"a/1.png": b"one", "a/2.png": b"two", "b c/é.png": b"three"}
HIDDEN = {"__MACOSX/a/1.png": b"x", "a/.DS_Store": b"x"}


@pytest.fixture(params=["folder", "zip", "tar", "tgz"])
def tree(request, tmp_path):
    every = {**FILES, **HIDDEN} if request.param != "folder" else {**FILES, "a/.DS_Store": b"x"}
    if request.param == "folder":
        path = tmp_path / "folder"
        for name, content in every.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    elif request.param == "zip":
        path = tmp_path / "files.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/", "")
            for name, content in every.items():
                archive.writestr(name, content)
    else:
        path = tmp_path / f"files.{request.param}"
        write_tar(path, every, "w:gz" if request.param == "tgz" else "w")
    return open_tree(path)


def write_tar(path, files, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def test_names_and_contents(tree):
    assert tree.names() == sorted(FILES)
    assert dict(tree.read(tree.names())) == FILES
    assert dict(tree.read(["a/2.png"])) == {"a/2.png": b"two"}
    assert tree.damaged == {}


@pytest.mark.parametrize("name", ["../out.png", "a/../../out.png", "/etc/out.png", "..\\out.png"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_entries_that_point_outside(tmp_path, name, kind):
    path = tmp_path / f"evil.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, b"x")
    else:
        write_tar(path, {name: b"x"})
    with pytest.raises(ValueError, match=rf"evil.{kind} is refused: its entry .*out.png' points outside"):
        open_tree(path).names()


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.9, -1])
def test_a_zip_cut_short(tmp_path, keep):
    path = tmp_path / "files.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(50):
            archive.writestr(f"a/{number}.png", os.urandom(100))
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match=r"files.zip is damaged or cut short"):
        open_tree(path).names()


def test_a_damaged_entry_is_an_error_of_its_own(tmp_path):
    path = tmp_path / "files.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/1.png", b"A" * 1000)
        archive.writestr("a/2.png", b"B" * 1000)
    content = bytearray(path.read_bytes())
    content[content.index(b"AAAA") + 5] ^= 1
    path.write_bytes(content)
    found = dict(open_tree(path).read(["a/1.png", "a/2.png"]))
    assert isinstance(found["a/1.png"], OSError)
    assert "Bad CRC" in str(found["a/1.png"])
    assert found["a/2.png"] == b"B" * 1000


@pytest.mark.parametrize("keep", [0.5, 0.95])
def test_a_tar_cut_short(tmp_path, keep):
    path = tmp_path / "files.tgz"
    write_tar(path, {f"a/{number}.png": os.urandom(2000) for number in range(50)}, "w:gz")
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(ValueError, match=r"files.tgz is damaged or cut short"):
        open_tree(path).names()


@pytest.mark.parametrize("blocks", range(1, 12))
def test_a_plain_tar_cut_between_two_files(tmp_path, blocks):
    path = tmp_path / "files.tar"
    write_tar(path, {f"a/{number}.png": b"x" * 400 for number in range(20)})
    path.write_bytes(path.read_bytes()[: 1024 * blocks])
    with pytest.raises(ValueError, match=r"files.tar is damaged or cut short: it has no end"):
        open_tree(path).names()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_the_same_name_twice(tmp_path, kind):
    path = tmp_path / f"files.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/1.png", b"x")
            with pytest.warns(UserWarning, match="Duplicate name"):
                archive.writestr("a/1.png", b"x")
    else:
        with tarfile.open(path, "w") as archive:
            for _ in range(2):
                archive.addfile(tarfile.TarInfo("a/1.png"))
    with pytest.raises(ValueError, match=rf"files.{kind} is refused: it holds 'a/1.png' 2 times"):
        open_tree(path).names()


def test_links_in_a_tar_are_named(tmp_path):
    write_tar(tmp_path / "files.tar", {"a/1.png": b"x"})
    with tarfile.open(tmp_path / "files.tar", "a") as archive:
        link = tarfile.TarInfo("a/2.png")
        link.type, link.linkname = tarfile.LNKTYPE, "a/1.png"
        archive.addfile(link)
    tree = open_tree(tmp_path / "files.tar")
    assert tree.names() == ["a/1.png"]
    assert tree.damaged == {"a/2.png": "a link, which is not followed in a tar file"}


def test_pipes_and_huge_files_are_not_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "large.png").write_bytes(b"x" * 1000)
    with zipfile.ZipFile(tmp_path.parent / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.png", b"x" * 1000)
    monkeypatch.setattr(trees, "MOST_BYTES", 999)
    tree = open_tree(tmp_path)
    assert tree.names() == ["large.png"]
    assert tree.damaged == {"pipe.png": "neither a file nor a folder"}
    for each in (tree, open_tree(tmp_path.parent / "bomb.zip")):
        ((_, content),) = each.read(["large.png"])
        assert "1,000 bytes are no image" in str(content) or "is larger than 999 bytes" in str(content)


def test_what_is_no_tree(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*nothing"):
        open_tree(tmp_path / "nothing")
    (tmp_path / "file.txt").write_text("hello")
    with pytest.raises(ValueError, match=r"file.txt is neither a folder nor a zip or tar"):
        open_tree(tmp_path / "file.txt")


def test_links(tmp_path):
    """Followed once; loops and links to nowhere are named, and hide nothing else."""
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "1.png").write_bytes(b"one")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "2.png").write_bytes(b"two")
    (root / "b").symlink_to(tmp_path / "elsewhere")
    (root / "a" / "loop").symlink_to(root)
    (root / "itself").symlink_to(root / "itself")
    (root / "nowhere.png").symlink_to(root / "gone.png")
    tree = open_tree(root)
    assert tree.names() == ["a/1.png", "b/2.png"]
    assert dict(tree.read(["b/2.png"])) == {"b/2.png": b"two"}
    assert tree.damaged.keys() == {"a/loop", "itself", "nowhere.png"}
    assert "leads back" in tree.damaged["a/loop"]


def test_a_file_that_disappears(tmp_path):
    (tmp_path / "1.png").write_bytes(b"one")
    tree = open_tree(tmp_path)
    (tmp_path / "1.png").unlink()
    ((_, content),) = tree.read(["1.png"])
    assert isinstance(content, FileNotFoundError)


@pytest.fixture
def deep(tmp_path):
    yield from deep_folder(tmp_path / "deep")


def test_folders_deeper_than_python_can_go(deep):
    (name,) = open_tree(deep).names()
    assert name == "a/" * 1200 + "x.png"


def test_links_that_fan_out(tmp_path):
    """Two in each of forty folders that lead to the next are a billion ways to the last."""
    for number in range(41):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / f"{number}.png").write_bytes(b"")
    for number in range(40):
        for name in "ab":
            (tmp_path / str(number) / name).symlink_to(tmp_path / str(number + 1))
    began = time.monotonic()
    tree = open_tree(tmp_path / "0")
    assert "0.png" in tree.names()
    assert time.monotonic() - began < 5
    assert "a folder that too many links lead to" in tree.damaged.values()
