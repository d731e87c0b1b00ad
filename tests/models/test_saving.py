"""What is saved opens again as the same network."""

import json

import pytest
import torch
from torch import nn

import rankshot
from rankshot.methods.prototypical import PrototypicalNetwork
from rankshot.models import Conv4, Mirrored
from rankshot.models.network import build
from rankshot.models.pretrained import preprocess_in
from rankshot.preprocess import Preprocess

EMBEDDER = {"name": "conv4", "in_channels": 1, "filters": 4}


def of_another_kind():
    return build({"name": "prototypical", "embedder": EMBEDDER})


@pytest.mark.parametrize("make", [lambda: Conv4(1, 4), lambda: Mirrored(Conv4(1, 4)), of_another_kind])
def test_there_and_back(tmp_path, make):
    network = make()
    network(torch.rand(8, 1, 20, 20))  # running averages of its own
    place = rankshot.save_pretrained(network, tmp_path / "new" / "folder", Preprocess(1, 20, 20, invert=True))
    again = rankshot.from_pretrained(place)
    assert type(again) is type(network)
    assert not again.training
    images = torch.rand(3, 1, 20, 20)
    torch.testing.assert_close(again(images), network.eval()(images), rtol=0, atol=0)
    assert preprocess_in(place) == Preprocess(1, 20, 20, invert=True)


def test_what_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"Linear does not tell what it is: rankshot\.wrap"):
        rankshot.save_pretrained(nn.Linear(2, 2), tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    for place in (tmp_path / "full", tmp_path / "full" / "file"):
        with pytest.raises(FileExistsError, match="exists already: name a new folder"):
            rankshot.save_pretrained(Conv4(1, 4), place)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


@pytest.mark.parametrize("wanted", [Preprocess(3, 20, 20), (1, 20, 20)])
def test_pictures_that_the_network_cannot_see(tmp_path, wanted):
    with pytest.raises((TypeError, ValueError), match=r"preprocess must be a Preprocess|sees images of 1 channels, got 3"):
        rankshot.save_pretrained(Conv4(1, 4), tmp_path / "folder", wanted)
    assert not list(tmp_path.iterdir())


def test_without_a_shape_nothing_is_told_of_images(tmp_path):
    place = rankshot.save_pretrained(Conv4(1, 4), tmp_path / "folder")
    assert json.loads((place / "config.json").read_text()).keys() == {"rankshot", "model"}
    assert preprocess_in(place) is None


def test_what_earlier_versions_told_of_images(tmp_path):
    place = rankshot.save_pretrained(Conv4(1, 4), tmp_path / "folder")
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, "images": {"shape": [1, 20, 24], "invert": True}}))
    assert preprocess_in(place) == Preprocess(1, 20, 24, invert=True)
    (place / "config.json").write_text(json.dumps({**config, "images": {"shape": [1, 20, 2400]}}))
    with pytest.raises(ValueError, match=r"config.json: preprocess: width must be a whole number from 1 to 2048"):
        preprocess_in(place)


def test_a_network_made_by_hand_is_not_taken_for_another(tmp_path):
    with pytest.raises(ValueError, match="PrototypicalNetwork does not tell what it is"):
        rankshot.save_pretrained(PrototypicalNetwork(Conv4(1, 4)), tmp_path / "folder")
