"""One file for programs without rankshot: it agrees with the network, or is not written."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import photograph
from PIL import Image
from torch import nn

from rankshot.data.decoding_steps import decoding_steps
from rankshot.gallery import Embedder
from rankshot.models import Conv4, Mirrored, shipped
from rankshot.models.export import AGREES, export
from rankshot.models.imagenet import SOURCES
from rankshot.models.network import build
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
    need_for(kind)
    expected = {}
    for name in names:
        embedder, place = Embedder(name), tmp_path / name
        place.mkdir()
        assert embedder.export(place / f"model.{kind}") <= AGREES
        pixels = np.random.default_rng(0).integers(0, 256, (7, *embedder.preprocess.shape), dtype=np.uint8)
        np.save(place / "in.npy", pixels.astype(np.float32) / 255)
        expected[place] = embedder(list(pixels))
    subprocess.run([sys.executable, "-W", "ignore", "-c", ALONE, kind, *expected], check=True, capture_output=True)
    for place, vectors in expected.items():
        np.testing.assert_allclose(np.load(place / "out.npy"), vectors, rtol=0, atol=AGREES, err_msg=place.name)


def need_for(kind):
    """Skip what is written by packages that are not here."""
    if kind.endswith("onnx"):
        pytest.importorskip("onnxscript")


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
    need_for(kind)
    embedder = Embedder(Mirrored(Conv4(3, 4)), Preprocess(3, 20, 28, invert=True), name="mine")
    embedder.export(tmp_path / f"m{kind}")
    about = json.loads(told_by(tmp_path / f"m{kind}"))
    assert about["preprocess"] == decoding_steps(Preprocess(3, 20, 28, invert=True))
    assert (about["name"], about["dimensions"], about["fingerprint"]) == ("mine", 4, embedder.fingerprint)


WITHOUT_RANKSHOT = Path(__file__).parents[2] / "examples" / "onnx_without_rankshot.py"
EMBED = """
import runpy, sys
import numpy as np
sys.modules["rankshot"] = sys.modules["torch"] = None  # whoever imports them fails
example, network, out, *paths = sys.argv[1:]
np.save(out, runpy.run_path(example)["embed"](paths, network))
"""


def without_rankshot(embedder, folder, paths):
    """Vectors by an ONNX file and the lines of the example, in a process that has neither rankshot nor torch."""
    need_for("onnx")
    embedder.export(folder / "network.onnx")
    command = [sys.executable, "-c", EMBED, WITHOUT_RANKSHOT, folder / "network.onnx", folder / "out.npy", *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "out.npy")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """JPEGs as people have them: of several sizes and forms, grey, and turned by their EXIF."""
    folder = tmp_path_factory.mktemp("photographs")
    sizes = [(3000, 2000), (1500, 2000), (640, 480), (90, 400), (464, 700), (84, 84), (30, 20)]
    for number, size in enumerate(sizes):
        photograph(size, number).save(folder / f"{size[0]}x{size[1]}.jpg", quality=90)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right
    photograph((900, 600), 7).save(folder / "turned.jpg", exif=exif)
    photograph((500, 375), 8).convert("L").save(folder / "grey.jpg")
    photograph((500, 375), 9).convert("CMYK").save(folder / "printed.jpg")
    return sorted(folder.iterdir())


EVERY = [
    *(pytest.param(name, marks=[] if name == FIRST else pytest.mark.slow) for name in shipped()),
    *(pytest.param(name, marks=pytest.mark.slow) for name in SOURCES),
    *(
        pytest.param({"name": "resnet12", "widths": widths}, marks=pytest.mark.slow, id=f"resnet12-{widths}")
        for widths in ("64-160-320-640", "64-128-256-512")
    ),
]


def named(model):
    return Embedder(model if isinstance(model, str) else build(model, Preprocess(3, 84, 84)))


@pytest.mark.parametrize("model", EVERY)
def test_a_few_lines_without_rankshot_give_its_vectors(tmp_path, photographs, model):
    embedder = named(model)
    found, expected = without_rankshot(embedder, tmp_path, photographs), embedder(photographs)
    assert found.shape == (len(photographs), embedder.dimensions)
    cosines = (found * expected).sum(1)
    assert cosines.min() > 0.99999, dict(zip([path.name for path in photographs], cosines, strict=True))
    assert abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-5


@pytest.mark.slow  # of real photographs, which are not everywhere
@pytest.mark.parametrize("model", ["conv4-cub", "efficientnet-lite0"])
def test_the_same_of_real_photographs(tmp_path, shared, model):
    with zipfile.ZipFile(shared / "cub" / "CUB_200_2011-sample.zip") as archive:
        names = [name for name in archive.namelist() if name.endswith(".jpg")]
        paths = [archive.extract(name, tmp_path) for name in names]
    assert len(paths) == 48
    embedder = named(model)
    assert (without_rankshot(embedder, tmp_path, paths) * embedder(paths)).sum(1).min() > 0.99999


@pytest.fixture(scope="module")
def of_every_kind(tmp_path_factory):
    """Files that are no JPEGs: transparent ones, palettes, 16 bits, floats."""
    folder, random, colours = tmp_path_factory.mktemp("kinds"), np.random.default_rng(0), photograph((300, 200))
    transparent = colours.copy()
    transparent.putalpha(Image.fromarray(random.integers(0, 256, (200, 300), dtype=np.uint8)))
    deep = random.integers(0, 2**16, (120, 90), dtype=np.uint16)
    transparent.save(folder / "transparent.png")
    transparent.convert("LA").save(folder / "grey-transparent.png")
    colours.quantize(50).save(folder / "palette.png")
    colours.convert("1").save(folder / "ink.png")
    colours.quantize(20).save(folder / "palette.gif")
    colours.save(folder / "colours.webp")
    Image.fromarray(deep).save(folder / "sixteen.png")
    Image.fromarray(deep % 200).save(folder / "few-of-sixteen.png")
    Image.fromarray(deep.astype(np.float32) / 2**16).save(folder / "floats.tiff")
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    "preprocess",
    [
        Preprocess(1, 84, 60, "pad", "lanczos", invert=True),
        pytest.param(Preprocess(3, 60, 84, "crop", "bilinear"), marks=pytest.mark.slow),
        pytest.param(Preprocess(3, 84, 84), marks=pytest.mark.slow),
        pytest.param(Preprocess(3, 28, 28, "pad", "box"), marks=pytest.mark.slow),
        pytest.param(Preprocess(1, 28, 28, "crop", "nearest", invert=True), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_few_lines_without_rankshot_see_its_pixels(tmp_path, photographs, of_every_kind, preprocess):
    """A network that hands its pixels on shows any that is another."""
    embedder, paths = Embedder(nn.Flatten(), preprocess), [*photographs, *of_every_kind]
    found, expected = without_rankshot(embedder, tmp_path, paths), embedder(paths)
    for path, own, wanted in zip(paths, found, expected, strict=True):
        np.testing.assert_allclose(own, wanted, rtol=0, atol=1e-6, err_msg=path.name)


class Wavering(nn.Module):
    """Another answer every time."""

    def forward(self, images):
        return images.flatten(1).mean(1, keepdim=True) + torch.rand(8)


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
