"""Files are found as they lie there."""

import pytest
from pictures import deep_folder

from rankshot.gallery.image_files import examples, image_files


@pytest.fixture
def folder(tmp_path):
    for name in (
        "a/1.jpg",
        "a/deep/2.PNG",
        "b/3.webp",
        "b/notes.txt",
        ".hidden/4.jpg",
        "b/.5.jpg",
        "empty/none.txt",
        "b/6.HEIC",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return tmp_path


def test_files_and_folders(folder):
    (folder / "a" / "loop").symlink_to(folder / "a")
    found = {path.relative_to(folder).as_posix() for path in image_files([folder])}
    assert found == {"a/1.jpg", "a/deep/2.PNG", "b/3.webp", "b/6.HEIC"}  # who reads the last one is told that it cannot be
    assert list(image_files([folder / "b" / "notes.txt"])) == [folder / "b" / "notes.txt"]  # who names it means it
    with pytest.raises(FileNotFoundError, match=r"there is no .*nowhere"):
        list(image_files([folder / "nowhere"]))


def test_in_the_order_of_their_names(tmp_path):
    """Numbers by their value, folders between files, and what is given in the order that it is given in."""
    names = ["10.jpg", "2.jpg", "3/1.jpg", "3/b.jpg", "a12/x.png", "a9.png", "B.png"]
    for name in reversed(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = [path.relative_to(tmp_path).as_posix() for path in image_files([tmp_path])]
    assert found == ["2.jpg", "3/1.jpg", "3/b.jpg", "10.jpg", "B.png", "a9.png", "a12/x.png"]
    given = [tmp_path / "a9.png", tmp_path / "3"]
    assert list(image_files(given)) == [tmp_path / "a9.png", tmp_path / "3/1.jpg", tmp_path / "3/b.jpg"]


def test_examples(folder):
    assert examples(folder) == {
        "a": [folder / "a/1.jpg", folder / "a/deep/2.PNG"],
        "b": [folder / "b/3.webp", folder / "b/6.HEIC"],
    }
    with pytest.raises(ValueError, match="must hold a folder of images for each class"):
        examples(folder / "empty")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        examples(folder / "nowhere")


@pytest.fixture
def deep(tmp_path):
    yield from deep_folder(tmp_path / "deep")


def test_folders_deeper_than_python_can_go(deep):
    assert [path.name for path in image_files([deep])] == ["x.png"]
