"""One file for programs without rankshot: it agrees with the network, or is not written."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from rankshot.gallery import Embedder
from rankshot.models import Conv4, Mirrored, shipped
from rankshot.models.export import AGREES, export
from rankshot.preprocess import Preprocess

ALONE = """
import sys
import numpy as np
for place in sys.argv[2:]:
    images = np.load(f"{place}/in.npy")
    if sys.argv[1] == "onnx":
        import onnxruntime
        session = onnxruntime.InferenceSession(f"{place}/model.onnx")
        answer = lambda images: session.run(None, {"images": images})[0]
    else:
        import torch
        network = torch.export.load(f"{place}/model.pt2").module()
        answer = lambda images: network(torch.from_numpy(images)).detach().numpy()
    np.save(f"{place}/out.npy", np.concatenate([answer(images[:1]), answer(images[1:])]))
assert "rankshot" not in sys.modules
"""


# For photographs, with mirror images: of more parts than the one for characters.
FIRST = "conv4-mini-imagenet"
OTHERS = [name for name in shipped() if name != FIRST]


@pytest.mark.parametrize("kind", ["onnx", pytest.param("pt2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("names", [[FIRST], pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["first", "others"])
def test_the_shipped_networks_in_a_program_of_its_own(tmp_path, names, kind):
    expected = {}
    for name in names:
        embedder, place = Embedder(name), tmp_path / name
        place.mkdir()
        assert embedder.export(place / f"model.{kind}") <= AGREES
        pixels = np.random.default_rng(0).integers(0, 256, (7, *embedder.preprocess.shape), dtype=np.uint8)
        np.save(place / "in.npy", pixels.astype(np.float32) / 255)
        expected[place] = embedder._vectors(pixels)
    subprocess.run([sys.executable, "-W", "ignore", "-c", ALONE, kind, *expected], check=True, capture_output=True)
    for place, vectors in expected.items():
        np.testing.assert_allclose(np.load(place / "out.npy"), vectors, rtol=0, atol=AGREES, err_msg=place.name)


def told_by(path):
    if path.suffix == ".onnx":
        import onnx

        return {each.key: each.value for each in onnx.load(path).metadata_props}["rankshot"]
    extra = {"rankshot.json": ""}
    torch.export.load(path, extra_files=extra)
    return extra["rankshot.json"]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's own, on reading
@pytest.mark.parametrize("kind", [".onnx", ".pt2"])
def test_it_tells_how_images_are_made_ready(tmp_path, kind):
    embedder = Embedder(Mirrored(Conv4(3, 4)), Preprocess(3, 20, 28, invert=True), name="mine")
    embedder.export(tmp_path / f"m{kind}")
    about = json.loads(told_by(tmp_path / f"m{kind}"))
    assert about["preprocess"] == json.loads(json.dumps(Preprocess(3, 20, 28, invert=True).to_json()))
    assert (about["name"], about["dimensions"], about["fingerprint"]) == ("mine", 4, embedder.fingerprint)


class Wavering(nn.Module):
    """Another answer every time."""

    def forward(self, images):
        return images.flatten(1)[:, :8] + torch.rand(8)


def test_what_does_not_agree_is_not_written(tmp_path):
    path = tmp_path / "model.pt2"
    with pytest.raises(RuntimeError, match=r"model.pt2 would give other embeddings than the network, by up to 0\."):
        export(Wavering(), (1, 4, 4), path, {})
    assert list(tmp_path.iterdir()) == []


def test_bad_names(tmp_path):
    with pytest.raises(ValueError, match=r"model.pth must end in .onnx or .pt2"):
        export(Conv4(1, 4), (1, 16, 16), tmp_path / "model.pth", {})
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder.onnx is a folder"):
        export(Conv4(1, 4), (1, 16, 16), tmp_path / "folder.onnx", {})
    with pytest.raises(FileNotFoundError, match=r"nowhere/model.pt2"):
        export(Conv4(1, 4), (1, 16, 16), tmp_path / "nowhere" / "model.pt2", {})


def test_the_network_stays_as_it_was():
    network = Conv4(1, 4).train()
    before = {name: each.clone() for name, each in network.state_dict().items()}
    with pytest.raises(FileNotFoundError):
        export(network, (1, 16, 16), "nowhere/model.pt2", {})
    assert network.training
    assert all(torch.equal(each, before[name]) for name, each in network.state_dict().items())
    assert network[0][0].weight.is_contiguous(memory_format=torch.channels_last)
