"""A network in a folder: what comes out is what went in, and nothing else is taken for it."""

import json

import pytest
import torch

import rankshot
from rankshot.models import Conv4
from rankshot.models.network import build
from rankshot.models.pretrained import fill
from rankshot.schema import read_json
from rankshot.tensors import read_notes, read_tensors, write_tensors

DESCRIPTION = {"name": "conv4", "in_channels": 3, "filters": 4}


@pytest.fixture
def folder(tmp_path):
    model = build(DESCRIPTION)
    model(torch.rand(5, 3, 16, 16))  # running averages of its own
    (tmp_path / "config.json").write_text(json.dumps({"model": DESCRIPTION}))
    write_tensors(tmp_path / "model.safetensors", model.state_dict(), {"update": "3"})
    return tmp_path


def test_back_and_forth(folder):
    model = rankshot.from_pretrained(str(folder))
    assert isinstance(model, Conv4)
    assert not model.training
    assert read_notes(folder / "model.safetensors") == {"update": "3"}
    stored = read_tensors(folder / "model.safetensors")
    assert stored.keys() == model.state_dict().keys()
    assert all(torch.equal(stored[name], each) for name, each in model.state_dict().items())
    assert model(torch.rand(2, 3, 16, 16)).shape == (2, 4)


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no network: there is no config\.json"):
        rankshot.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model": DESCRIPTION}))
    with pytest.raises(FileNotFoundError, match="holds no network yet: a run keeps its first one at its first validation"):
        rankshot.from_pretrained(tmp_path)


def test_a_name_that_is_misspelt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = r"no such folder\. Names of weights are .*conv4-cub.*\. Did you mean conv4-omniglot\?"
    with pytest.raises(FileNotFoundError, match=told):
        rankshot.from_pretrained("conv4-omniglott")


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_cut_short(folder, keep):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model.safetensors is damaged or cut short"):
        rankshot.from_pretrained(folder)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"filters": 5}, r"is of another model: '0.0.weight' must be \(5, 3, 3, 3\), got \(4, 3, 3, 3\)"),
        ({"in_channels": 1}, r"is of another model: '0.0.weight' must be \(4, 1, 3, 3\), got \(4, 3, 3, 3\)"),
    ],
)
def test_of_another_model(folder, other, message):
    (folder / "config.json").write_text(json.dumps({"model": {**DESCRIPTION, **other}}))
    with pytest.raises(ValueError, match=message):
        rankshot.from_pretrained(folder)


def test_of_another_kind_of_model(folder):
    live = {"a": torch.zeros(2), "b": torch.zeros(2)}
    with pytest.raises(ValueError, match="file is of another model: it has no 'b'"):
        fill(live, {"a": torch.ones(2)}, folder / "file")
    with pytest.raises(ValueError, match="file is of another model: it has 'c', which is not expected"):
        fill(live, {"a": torch.ones(2), "b": torch.ones(2), "c": torch.ones(2)}, folder / "file")
    assert not live["a"].any()  # nothing was touched


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be an object, got"),
        ('{"model": {"name": "conv5"}}', "holds a network 'conv5', and there is 'adapted', 'conv4'.*--load FILE"),
        ('{"model": {"name": ["a"]}}', r"model\.name must be a text"),
        ('{"model": 5}', "model must be an object, got 5"),
        ("{}", "does not tell what network it is about"),
        (
            '{"model": {"name": "conv4", "filters": -4}}',
            "filters of a network 'conv4' must be a whole number from 1 to 2048",
        ),
    ],
)
def test_bad_descriptions(folder, text, message):
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        rankshot.from_pretrained(folder)


def test_options_that_the_network_does_not_know():
    with pytest.raises(ValueError, match=r"a network 'conv4' has no setting 'layers': there is 'filters'"):
        build({"name": "conv4", "layers": 5})


def test_json_that_is_not_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not JSON"):
        read_json(tmp_path / "a")
