"""docs/extending.md and networks.md, done: each file that they show, outside the package, and the commands below it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import class_folders
from safetensors.torch import load_file

import rankshot
from rankshot.cli.main import main
from rankshot.registry import load_files
from rankshot.training.run_folder import read_metrics

DOCS = Path(__file__).parents[1] / "docs"
NETWORKS = (DOCS / "networks.md").read_text()
PAGE = NETWORKS + (DOCS / "extending.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\w+\.py) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
TINY = "--updates 4 --validation-episodes 5 --validate-every 2 --device cpu".split()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)
    return tmp_path


def commands_for(file):
    """Those of the page that load this file, as lists of arguments."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if file in line]


def run(arguments):
    tiny = [] if "--help" in arguments or "--resume" in arguments else TINY
    if arguments[0] == "train":
        return main([*arguments, *tiny])
    return main([*arguments, "--episodes", "5"] if arguments[0] == "evaluate" else arguments)


def test_every_kind_of_part_has_its_file():
    assert set(FILES) == {f"{kind}.py" for kind in ("network", "loss", "method", "dataset", "metric", "store")}
    assert all(commands_for(file) for file in FILES)


@pytest.mark.slow
def test_blocks_about_weights_and_a_module_that_is_there(here):
    names = {}
    for block in re.findall(r"(?<! -->\n)```python\n(.*?)```", NETWORKS, re.DOTALL):
        exec(compile(block, "networks.md", "exec"), names)
    assert names["network"].embedding_dim == 128
    config = json.loads(Path("runs/wrapped/config.json").read_text())
    assert config["method"] == {"name": "NCALoss", "is_object": True}
    images = torch.rand(3, 1, 28, 28)
    assert torch.equal(names["again"](images), names["network"].eval()(images))


@pytest.mark.slow
def test_a_file_is_run_once(capfd):
    Path("mine.py").write_text(FILES["loss.py"] + "\nprint('was run')\n")
    assert run(["train", "--load", "mine.py", "--method", "spread", "--out", "run"]) == 0
    assert capfd.readouterr().out.count("was run") == 1


@pytest.mark.slow
def test_a_loss(capsys):
    train, shown = commands_for("loss.py")
    assert run(train) == 0
    config = json.loads(Path("run/config.json").read_text())
    assert config["method"] == {"name": "spread", "floor": 0.1}
    capsys.readouterr()
    with pytest.raises(SystemExit):
        run(shown)
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--floor FLOAT Of spread: added to the variance of the batch. (default: 0.01)" in told
    assert "spread: the variance within classes, against that of the whole batch." in told
    assert "--alpha" not in told


@pytest.mark.slow
def test_a_method(capsys):
    train, evaluate = commands_for("method.py")
    assert run(train) == 0
    assert any("5-shot 20-way" in line.get("validation", {}) for line in read_metrics(Path("run")))
    assert run(evaluate) == 0
    assert "by-median" in capsys.readouterr().out
    assert type(rankshot.from_pretrained("run")).__name__ == "MedianNetwork"


def test_a_data_set(tmp_path, capsys):
    train, show = commands_for("dataset.py")
    root = ["--root", str(tmp_path / "cache")]
    assert run([*train, *root, "--batch-classes", "4", "--batch-size", "32"]) == 0
    assert run([*show, *root]) == 0
    assert Path("bars.png").stat().st_size > 1000
    images = rankshot.data.load("bars", "val", tmp_path / "cache")
    assert (len(images), images.classes[0], images.smallest_class) == (120, "bar-12", 20)
    few = rankshot.data.prepared("bars", tmp_path / "cache", per_class=3)
    assert few.name.startswith("bars-per_class3-")
    with pytest.raises(ValueError, match="bars has no option 'size': there is 'per_class'"):
        rankshot.data.prepared("bars", tmp_path / "cache", size=3)
    assert len(list((tmp_path / "cache").iterdir())) == 2

    @rankshot.data.register("inside")
    def inside(place: str = ""):
        raise AssertionError

    with pytest.raises(ValueError, match=r"become that of a folder, got 'inside-place/\.\./outside-"):
        rankshot.data.prepared("inside", tmp_path / "cache", place="/../outside")


@pytest.mark.slow
def test_a_metric():
    (train,) = commands_for("metric.py")
    assert run(train) == 0
    assert json.loads(Path("run/config.json").read_text())["method"]["metric"] == "root"
    scores, relevance = torch.tensor([[0.9, 0.8, 0.1]]), torch.tensor([[False, True, True]])
    found = rankshot.ranking.evaluate("root", scores, relevance) if hasattr(rankshot.ranking, "evaluate") else None
    assert found is None or found.item() == pytest.approx(0.0)  # both relevant items stand below the one that is not


@pytest.mark.slow
def test_a_gallery_store(here, capsys):
    class_folders(here / "photos", classes=2, per_class=3)
    (here / "photos" / "c0").rename(here / "photos" / "cat")
    add, search = commands_for("store.py")
    assert run(add) == 0
    assert run(search) == 0
    told = capsys.readouterr().out
    assert "loud: made g" in told
    assert "loud: 1 queries" in told
    assert "photos/cat/0.png" in told
    with pytest.raises(FileNotFoundError):
        rankshot.Gallery.open("loud:elsewhere")


@pytest.mark.slow
def test_a_resnet_of_one_s_own_through_every_command(here, rankshot):
    """Each command in a process of its own: trained, killed, gone on with, measured, searched, taught, exported, opened."""
    class_folders(here / "photos", classes=8, per_class=6)
    (here / "photos" / "c0").rename(here / "photos" / "cat")
    train, resume, *others = commands_for("network.py")
    small = "--updates 60 --validate-every 5 --checkpoint-every 5 --validation-episodes 5 --device cpu".split()

    def command(arguments):
        done = subprocess.run(rankshot(*arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    train = [*train, *small]
    whole = [*train[: train.index("--out")], "--out", "whole", *small]
    command(whole)
    killed = subprocess.Popen(rankshot(*train), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not Path("run/metrics.jsonl").exists() or len(read_metrics(Path("run"))) < 3:
        assert killed.poll() is None
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    command(resume)
    one, other = (load_file(f"{name}/state.safetensors") for name in ("whole", "run"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    about = json.loads(Path("run/config.json").read_text())
    assert about["model"] == {"name": "small-resnet", "in_channels": 3, "width": 8}
    assert about["preprocess"]["mean"] == [0.5, 0.5, 0.5]
    assert (about["preprocess"]["fit"], about["preprocess"]["height"]) == ("crop", 32)
    for arguments in others:
        command([*arguments, "--episodes", "10"] if arguments[0] == "evaluate" else arguments)
    assert Path("run.onnx").stat().st_size > 10_000
    without = subprocess.run(
        rankshot("classify", "photos", "--support", "photos", "--model", "run"), capture_output=True, text=True, check=False
    )
    assert without.returncode == 1
    assert "run holds a network 'small-resnet', and there is 'adapted', 'conv4'" in without.stderr
    code = (
        "import sys, numpy, onnxruntime, rankshot; rankshot.load_files([__import__('pathlib').Path('network.py')]); "
        "e = rankshot.Embedder('run'); images = numpy.random.default_rng(0).integers(0, 256, (4, 3, 32, 32), 'uint8'); "
        "s = onnxruntime.InferenceSession('run.onnx'); "
        "found = s.run(None, {'images': images.astype('float32') / 255})[0]; "
        "print(abs(e(list(images)) - found).max())"
    )
    opened = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(opened.stdout) < 1e-4


BROKEN = {
    "flat.py": "return nn.Conv2d(preprocess.channels, 4, 3)",
    "sized.py": "return nn.Sequential(nn.Flatten(), nn.Linear(784 * preprocess.channels, 4), nn.Unflatten(1, (4,)))",
    "no_module.py": "return 3",
    "raises.py": "return nn.Linear(3, -4)",
}


def network_file(name, body):
    head = "from torch import nn\nfrom rankshot import models\n\n@models.register('mine')\n"
    Path(name).write_text(f"{head}def mine(preprocess):\n    {body}\n")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "flat.py",
            "glyphs",
            "'mine' must give one embedding an image, (B, D) of floats, and gives shape (2, 4, 26, 26) of torch.float32",
        ),
        ("no_module.py", "glyphs", "the network 'mine' is no torch.nn.Module"),
        ("raises.py", "glyphs", "(raises.py, line 6)"),
        ("sized.py", "photos", "the network 'mine' cannot take images of 3x84x84 (channels, height, width): "),
    ],
)
def test_networks_that_do_not_fit(here, capsys, name, data, message):
    class_folders(here / "photos", classes=8, per_class=4)
    network_file(name, BROKEN[name])
    assert main(["train", "--load", name, "--network", "mine", "--data", data, "--out", "run", *TINY]) == 1
    told = capsys.readouterr().err
    assert message in told
    assert not Path("run").exists()


def test_files_that_bring_nothing(here, capsys):
    with pytest.raises(FileNotFoundError, match=r"there is no file none\.py"):
        load_files([Path("none.py")])
    Path("empty.py").write_text("")
    for files in (["empty.py"], ["loss.py", "empty.py"]):
        with pytest.raises(ValueError, match=r"empty\.py registers nothing: decorate a class or a function"):
            load_files(map(Path, files))
    Path("broken.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    assert main(["train", "--load", "broken.py", "--out", "run"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("rankshot: broken.py cannot be run: ZeroDivisionError: division by zero\n")
    assert 'File "broken.py", line 2, in f' in told  # its own traceback: it is the user's code
    assert not Path("run").exists()
    Path("ends.py").write_text("import sys\nsys.exit(0)\n")
    assert main(["train", "--load", "ends.py", "--out", "run"]) == 1
    assert "ends.py ends Python (exit code 0)" in capsys.readouterr().err
    load_files(["loss.py"])
    load_files([Path("loss.py").resolve()])  # again, however it is spelt, is no other
    Path("thief.py").write_text(FILES["loss.py"])
    with pytest.raises(ValueError, match=r"there is a loss 'spread' already, in .*loss\.py"):
        load_files([Path("thief.py")])


def test_a_file_that_imports_one_s_own_package(here, monkeypatch):
    package = here / "my_own_parts"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "losses.py").write_text(FILES["loss.py"])
    Path("first.py").write_text("import my_own_parts.losses\n")
    Path("second.py").write_text("from my_own_parts.losses import SpreadLoss\n")
    Path("nothing.py").write_text("import sys\nimport torch\nimport rankshot.methods\nfrom rankshot import losses\n")
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    for file in ("first.py", "first.py", "second.py"):  # again, it is there already
        load_files([file])
        assert "spread" in rankshot.losses.registry.LOSSES
    with pytest.raises(ValueError, match=r"nothing\.py registers nothing"):
        load_files(["nothing.py"])


@pytest.mark.slow
def test_weights_of_another_network(here, capsys):
    load_files([Path("network.py")])
    assert main(["train", "--network", "small-resnet", "--width", "4", "--out", "a", *TINY]) == 0
    capsys.readouterr()
    for arguments, message in (
        (
            ["--init", "a", "--network", "conv4"],
            "a is a network 'small-resnet', and this run's is 'conv4': begin with one of its kind",
        ),
        (
            ["--init", "a", "--network", "small-resnet", "--width", "8"],
            "a has in_channels 1, width 4, and this network in_channels 1, width 8: ",
        ),
    ):
        assert main(["train", *arguments, "--out", "b", *TINY]) == 1
        assert message in capsys.readouterr().err
        assert not Path("b").exists()
    assert main(["train", "--init", "a", "--network", "small-resnet", "--width", "4", "--method", "prototypical",
                 "--batch-classes", "4", "--batch-size", "16", "--out", "b", *TINY]) == 0  # fmt: skip
    first = load_file("b/start.safetensors")
    assert all(torch.equal(first[f"embedder.{name}"], each) for name, each in load_file("a/model.safetensors").items())


def test_normalising_happens_within_the_network():
    """What the page says of mean and deviation: whoever feeds a network gives images from 0 to 1."""
    load_files([Path("network.py")])
    from rankshot.models.network import build

    wanted = rankshot.Preprocess(3, 32, 32, mean=(0.5, 0.4, 0.3), deviation=(0.2, 0.3, 0.4))
    network = build({"name": "small-resnet", "in_channels": 3, "width": 4}, wanted).eval()
    images = torch.rand(2, 3, 32, 32)
    mean, deviation = (torch.tensor(each).view(3, 1, 1) for each in (wanted.mean, wanted.deviation))
    torch.testing.assert_close(network(images), network.network((images - mean) / deviation))
    assert set(network.state_dict()) == {f"network.{name}" for name in network.network.state_dict()}
    assert np.isfinite(rankshot.Embedder(network)([np.zeros((40, 30, 3), np.uint8)])).all()


@pytest.mark.slow
def test_a_plain_function_is_a_loss(capsys):
    Path("mine.py").write_text(
        "from rankshot import losses\n\n@losses.register('pull')\ndef pull(embeddings, labels, *, weight: float = 2.0):\n"
        "    return weight * (embeddings[labels == labels[0]].var(0)).mean()\n"
    )
    assert main(["train", "--load", "mine.py", "--method", "pull", "--weight", "0", "--out", "run", *TINY]) == 0
    assert json.loads(Path("run/config.json").read_text())["method"] == {"name": "pull", "weight": 0.0}


@pytest.mark.slow
def test_settings_of_one_s_own_have_its_own_limits():
    Path("mine.py").write_text(
        "from torch import nn\nfrom rankshot import models\n\n@models.register('mine')\n"
        "def mine(preprocess, *, shift: int = 0):\n"
        "    return nn.Sequential(nn.Conv2d(preprocess.channels, 4, 5), nn.Flatten())\n"
    )
    assert main(["train", "--load", "mine.py", "--network", "mine", "--shift", "-70000", "--out", "run", *TINY]) == 0
    assert rankshot.from_pretrained("run").description["shift"] == -70000


class Awkward(torch.nn.Module):
    """With attributes of all the names that a network of rankshot carries."""

    def __init__(self):
        super().__init__()
        self.preprocess, self.wrapped_network = torch.nn.Identity(), torch.nn.Flatten()
        self.layer = torch.nn.Linear(64, 3)

    @property
    def embedding_dim(self):
        return "mine"

    def forward(self, images):
        return self.layer(self.wrapped_network(self.preprocess(images)))


def test_a_module_with_attributes_of_our_names(here):
    wanted = rankshot.Preprocess(1, 8, 8)
    network = rankshot.wrap(Awkward(), preprocess=wanted)
    assert network.embedding_dim == 3
    rankshot.save_pretrained(network, here / "folder")
    again = rankshot.from_pretrained(here / "folder", network=Awkward())
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(again(images), network.eval()(images))
    with pytest.raises(ValueError, match="is a network of rankshot's already"):
        rankshot.wrap(network, preprocess=wanted)
    with pytest.raises(ValueError, match="there is a network 'conv4' in rankshot: call yours otherwise"):
        rankshot.wrap(torch.nn.Flatten(), preprocess=wanted, name="conv4")
    conv4 = rankshot.wrap(rankshot.models.Conv4(1, 4), preprocess=rankshot.Preprocess(1, 16, 16))
    assert (type(conv4).__name__, conv4.description["name"]) == ("Conv4", "conv4")  # of rankshot's own, it stays what it is
    other = rankshot.wrap(Awkward(), preprocess=rankshot.Preprocess(1, 8, 8, invert=True))
    with pytest.raises(ValueError, match="wants pictures 8x8 grey, and the network that is given 8x8 grey, dark ink"):
        rankshot.from_pretrained(here / "folder", network=other)


def test_a_classifier_with_a_network_of_one_s_own(here):
    trunk = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
    network = rankshot.wrap(trunk, preprocess=rankshot.Preprocess(3, 8, 8))
    pictures = [
        np.full((8, 8, 3), value, np.uint8) * np.arange(8, dtype=np.uint8)[:, None, None] for value in (3, 9, 21, 30)
    ]
    classifier = rankshot.FewShotClassifier(rankshot.Embedder(network)).fit(pictures, ["a", "a", "b", "b"])
    classifier.save_pretrained(here / "saved")
    blank = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
    again = rankshot.FewShotClassifier.from_pretrained(here / "saved", network=blank)
    assert list(again.predict(pictures)) == list(classifier.predict(pictures))
