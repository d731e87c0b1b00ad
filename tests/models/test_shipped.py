"""The weights that come with the package load by name, are small, and say what they were made from."""

import json
import re
from pathlib import Path

import pytest
import torch

import rankshot
from rankshot.models import shipped
from rankshot.models.shipped import FOLDER, folder_of, has_name
from rankshot.training import TrainConfig


@pytest.mark.parametrize("name", shipped())
def test_each(name):
    model = rankshot.from_pretrained(name)
    folder = FOLDER / name
    settings = TrainConfig.from_json(folder / "config.json")
    size = {"omniglot": 28, "mini-imagenet": 84, "cub": 64}[settings.data.name]
    channels = json.loads((folder / "config.json").read_text())["model"]["in_channels"]
    with torch.no_grad():
        embeddings = model(torch.rand(4, channels, size, size))
    assert embeddings.shape[1] in ((640,) if name.startswith("resnet12") else (64, 1024, 1600))
    assert embeddings.isfinite().all()
    assert (folder / "model.safetensors").stat().st_size < (26_000_000 if name.startswith("resnet12") else 500_000)
    assert settings.data.root is None
    card = (folder / "README.md").read_text()
    assert f'rankshot.from_pretrained("{name}")' in card
    assert re.search(r"## Training data\n\n.*(MIT licence|non-commercial research)", card)
    assert re.search(r"\| retrieval 20-way \| \d\d\.\d\d ± 0\.\d\d \|", card)


def test_there_are_some():
    assert "conv4-omniglot" in shipped()


def test_a_folder_that_is_there_wins_over_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert has_name(folder_of("conv4-omniglot"))
    Path("conv4-omniglot").mkdir()
    assert has_name(folder_of("conv4-omniglot"))  # an empty one is no network
    Path("conv4-omniglot/config.json").write_text("{}")
    assert not has_name(folder_of("conv4-omniglot"))
    assert folder_of("elsewhere") == Path("elsewhere")


def test_a_name_that_is_none():
    with pytest.raises(
        FileNotFoundError, match=r"conv4-omniglut holds no network: there is no such folder.* Did you mean conv4-omniglot"
    ):
        rankshot.from_pretrained("conv4-omniglut")
