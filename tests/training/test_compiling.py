"""torch.compile: what is compiled learns the same, and what cannot be is refused."""

import copy
import shutil

import pytest
import torch

import rankshot
from rankshot.methods import METHODS
from rankshot.methods.method import has_loop
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors
from rankshot.training import TrainConfig, run_folder, train
from rankshot.training.callbacks import Callback


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, within its compiler
def test_a_compiled_network_learns_the_same(device, tmp_path):
    if device == "cpu" and shutil.which("g++") is None:
        pytest.skip("torch.compile needs a C++ compiler")
    torch.manual_seed(0)
    ink = Preprocess(1, 28, 28, invert=True)
    layers = [torch.nn.Conv2d(1, 8, 3, stride=2), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten()]
    network = rankshot.wrap(torch.nn.Sequential(*layers, torch.nn.Linear(8 * 13 * 13, 16)), preprocess=ink)
    found = []
    for compiled in (False, True):
        config = TrainConfig.of(
            updates=4,
            validate_every=0,
            method="supcon",
            optimiser="sgd",
            learning_rate=0.01,
            schedule="constant",
            precision="float32",
            device=device,
            compile=compiled,
        )
        train(config, tmp_path / str(compiled), network=copy.deepcopy(network), progress=Callback())
        found.append(read_tensors(tmp_path / str(compiled) / run_folder.STATE))
    for name, tensor in found[0].items():
        torch.testing.assert_close(tensor, found[1][name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute")  # of torch, within its compiler
@pytest.mark.parametrize("method", ["memory", "meta-lstm", "arc"])
def test_a_compiled_loop_learns_the_same(method, device, tmp_path):
    if device == "cpu" and shutil.which("g++") is None:
        pytest.skip("torch.compile needs a C++ compiler")
    found = []
    for compiled in (False, True):
        config = TrainConfig.of(
            updates=3,
            validate_every=0,
            method=method,
            batch_size=40,
            batch_classes=5,
            optimiser="sgd",
            learning_rate=0.01,
            precision="float32",
            device=device,
            compile=compiled,
        )
        train(config, tmp_path / str(compiled), progress=Callback())
        found.append(read_tensors(tmp_path / str(compiled) / run_folder.STATE))
    for name, tensor in found[0].items():
        torch.testing.assert_close(tensor, found[1][name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({}, "conv4 has fast kernels of its own"), ({"method": "maml", "network": "resnet12"}, "maml does not learn from")],
)
def test_what_is_not_compiled(settings, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(TrainConfig.of(**{"compile": True, "batch_size": 40, "batch_classes": 5, **settings}), tmp_path / "run")


def test_methods_with_a_loop():
    assert {name for name in METHODS if has_loop(METHODS[name].make)} == {"memory", "meta-lstm", "arc"}
