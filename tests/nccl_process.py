"""Trains on a GPU as one of several processes does, by NCCL, and as one by itself; says whether that is the same."""

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from rankshot import gathering
from rankshot.data import ImageSet
from rankshot.gathering import average_, told_by_all
from rankshot.processes import joined
from rankshot.tensors import read_tensors
from rankshot.training import Callback, TrainConfig, train
from rankshot.training.run_folder import STATE


def trained(folder):
    random = np.random.default_rng(0)
    images = [
        ImageSet(
            random.integers(0, 256, (80, 3, 32, 32), dtype=np.uint8),
            np.arange(80) // 8,
            tuple(f"{name}{number}" for number in range(10)),
        )
        for name in "ab"
    ]
    config = TrainConfig.of(
        batch_classes=5,
        batch_size=30,
        filters=8,
        updates=6,
        validate_every=3,
        device="cuda",
        validation_episodes=5,
        method="supcon",
        precision="float32",
        cuda_graph=False,
        optimiser="sgd",
        learning_rate=0.01,
        schedule="constant",
    )
    train(config, folder, train_set=images[0], val_set=images[1], progress=Callback())
    return read_tensors(folder / STATE)


def main():
    torch.backends.cudnn.allow_tf32 = False
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1", GROUP_RANK="0")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29571")
    with tempfile.TemporaryDirectory() as folder:
        expected = trained(Path(folder) / "alone")
        gathering.LEAST = 1
        with joined():
            assert "nccl" in str(distributed.get_backend_config())
            found = trained(Path(folder) / "nccl")
            values = [torch.rand(3, device="cuda")]
            before = values[0].clone()
            average_(values)
            assert torch.equal(values[0], before)
            assert told_by_all([1, "a"]) == [[1, "a"]]
    for name, tensor in found.items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=1e-5, msg=name)
    print("nccl: the same")


if __name__ == "__main__":
    main()
