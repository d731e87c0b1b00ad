"""Networks as parts: modules of one's own of every kind, wrapped, saved and opened."""

import pytest
import torch
from torch import nn

import rankshot
from rankshot import models
from rankshot.models.network import check_embedding_network
from rankshot.preprocess import Preprocess

COLOUR = Preprocess(3, 16, 16)


def test_a_module_may_be_wrapped_once_more():
    """As when a cell of a notebook is run again, or after another size was refused."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4))
    with pytest.raises(ValueError, match="'Sequential' cannot take images of 3x20x20"):
        rankshot.wrap(module, preprocess=Preprocess(3, 20, 20))
    assert not hasattr(module, "preprocess")
    assert rankshot.wrap(module, preprocess=COLOUR) is module
    again = rankshot.wrap(module, preprocess=Preprocess(3, 16, 16, fit="crop"), name="mine")
    assert again is module
    assert (again.preprocess.fit, again.description["name"]) == ("crop", "mine")
    normalised = rankshot.wrap(module, preprocess=Preprocess(3, 16, 16, mean=(0.5,) * 3))
    assert list(normalised.state_dict()) == ["network.1.weight", "network.1.bias"]
    with pytest.raises(ValueError, match="is a network of rankshot's already, for pictures 16x16 in colour, mean"):
        rankshot.wrap(normalised, preprocess=COLOUR)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Conv2d(3, 2, 3), r"\(B, D\) of floats, and gives shape \(2, 2, 14, 14\)"),
        (nn.Sequential(nn.MaxPool2d(16, padding=0), nn.Flatten(0)), r"gives shape \(6,\)"),
    ],
)
def test_what_a_network_gives(module, message):
    with pytest.raises(ValueError, match=message):
        rankshot.wrap(module, preprocess=COLOUR)


def test_whole_numbers_are_no_embeddings():
    class Whole(nn.Flatten):
        def forward(self, images):
            return super().forward(images).long()

    with pytest.raises(ValueError, match=r"gives shape \(2, 768\) of torch\.int64"):
        rankshot.wrap(Whole(), preprocess=COLOUR)


def test_a_size_that_is_asserted():
    class Asserts(nn.Flatten):
        def forward(self, images):
            torch._assert(images.shape[-1] == 224, "Wrong image height! Expected 224")
            return super().forward(images)

    with pytest.raises(ValueError, match=r"'Asserts' cannot take images of 3x16x16.*: Wrong image height! Expected 224"):
        rankshot.wrap(Asserts(), preprocess=COLOUR)


@pytest.mark.parametrize("name", [3, "", "x" * 101])
def test_names_that_cannot_be_saved(name):
    with pytest.raises(ValueError, match="the name of a network must be a text of 1 to 100 characters"):
        rankshot.wrap(nn.Flatten(), preprocess=COLOUR, name=name)


def test_a_depthwise_network_can_be_saved(tmp_path):
    def network():
        return nn.Sequential(nn.Conv2d(3, 6, 9, groups=3), nn.Flatten())

    wrapped = rankshot.wrap(network(), preprocess=COLOUR)
    rankshot.save_pretrained(wrapped, tmp_path / "saved")
    images = torch.rand(2, 3, 16, 16)
    assert torch.equal(rankshot.from_pretrained(tmp_path / "saved", network=network())(images), wrapped.eval()(images))


class Looks(nn.Sequential):
    """As timm's transformers do: a constructor that looks at a number."""

    def __init__(self, depth):
        rates = [rate.item() for rate in torch.linspace(0, 0.1, depth)]
        super().__init__(*(nn.Dropout(rate) for rate in rates), nn.Flatten(), nn.Linear(768, 4))


class Lazy(nn.Sequential):
    def __init__(self, depth):
        super().__init__(nn.Flatten(), nn.LazyLinear(depth))


@pytest.mark.parametrize("kind", [Looks, Lazy])
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_constructors_that_look_at_numbers(tmp_path, kind):
    @models.register("looks")
    def looks(preprocess, *, depth: int = 2):
        return kind(depth)

    preprocess = COLOUR
    network = models.network.build(models.network.describe("looks", preprocess, {"depth": 3}), preprocess)
    rankshot.save_pretrained(network, tmp_path / "saved")
    images = torch.rand(2, 3, 16, 16)
    assert torch.equal(rankshot.from_pretrained(tmp_path / "saved")(images), network.eval()(images))


def test_weights_of_another_network_name_both(tmp_path):
    rankshot.save_pretrained(rankshot.wrap(nn.Flatten(), preprocess=COLOUR, name="mine"), tmp_path / "saved")
    with pytest.raises(ValueError, match=r"saved holds a network 'mine', and Sequential is given: .* has no"):
        rankshot.from_pretrained(tmp_path / "saved", network=nn.Sequential(nn.Flatten(), nn.Linear(768, 2)))
    with pytest.raises(ValueError, match="holds a network 'conv4', which is made without help: leave the network out"):
        rankshot.from_pretrained("conv4-cub", network=nn.Flatten())


def test_a_folder_of_a_later_version(tmp_path):
    rankshot.save_pretrained(rankshot.wrap(rankshot.models.Conv4(3), preprocess=COLOUR), tmp_path / "saved")
    path = tmp_path / "saved" / "config.json"
    content = path.read_text()
    for version, message in ((4, "its format 4 is newer than this version"), (0, "its format must be from 1 to 3, got 0")):
        path.write_text(content.replace("{", f'{{"format": {version},', 1))
        with pytest.raises(ValueError, match=rf"config\.json: {message}"):
            rankshot.from_pretrained(tmp_path / "saved")
        with pytest.raises(ValueError, match=message):
            rankshot.Embedder(tmp_path / "saved")


def test_networks_around_others():
    check_embedding_network("conv4")
    with pytest.raises(ValueError, match="network 'maml' is built around an embedding network, by its method"):
        check_embedding_network("maml")
    with pytest.raises(ValueError, match="network 'prototypical' is built around"):
        rankshot.TrainConfig.of(network="prototypical")
