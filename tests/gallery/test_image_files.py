"""Files are found as they lie there."""

import pytest
from pictures import deep_folder

from rankshot.gallery.image_files import examples, image_files


@pytest.fixture
def folder(tmp_path):
    for name in ("a/1.jpg", "a/deep/2.PNG", "b/3.webp", "b/notes.txt", ".hidden/4.jpg", "b/.5.jpg", "empty/none.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return tmp_path


def test_files_and_folders(folder):
    (folder / "a" / "loop").symlink_to(folder / "a")
    found = {path.relative_to(folder).as_posix() for path in image_files([folder])}
    assert found == {"a/1.jpg", "a/deep/2.PNG", "b/3.webp"}
    assert list(image_files([folder / "b" / "notes.txt"])) == [folder / "b" / "notes.txt"]  # who names it means it
    with pytest.raises(FileNotFoundError, match=r"there is no .*nowhere"):
        list(image_files([folder / "nowhere"]))


def test_examples(folder):
    assert examples(folder) == {"a": [folder / "a/1.jpg", folder / "a/deep/2.PNG"], "b": [folder / "b/3.webp"]}
    with pytest.raises(ValueError, match="must hold a folder of images for each class"):
        examples(folder / "empty")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        examples(folder / "nowhere")


@pytest.fixture
def deep(tmp_path):
    yield from deep_folder(tmp_path / "deep")


def test_folders_deeper_than_python_can_go(deep):
    assert [path.name for path in image_files([deep])] == ["x.png"]
