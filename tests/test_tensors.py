"""Tensors in a file: every bit counts."""

import contextlib
import logging
import os

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from rankshot import tensors
from rankshot.tensors import read_notes, read_tensors, write_tensors


def test_there_and_back(tmp_path):
    written = {"a": torch.arange(6.0).view(2, 3).T, "b": torch.tensor(3), "c": torch.zeros(0, dtype=torch.bool)}
    write_tensors(tmp_path / "t", written, {"update": "7", "sha256 of something": "0" * 64})
    assert read_notes(tmp_path / "t") == {"update": "7", "sha256 of something": "0" * 64}
    assert all(torch.equal(each, written[name]) for name, each in read_tensors(tmp_path / "t").items())


def test_in_a_folder_whose_name_is_no_text(tmp_path):
    """safetensors itself takes no such name."""
    folder = tmp_path / os.fsdecode(b"run\xff\x1b[31m")
    folder.mkdir()
    write_tensors(folder / "t", {"a": torch.arange(3)}, {"update": "7"})
    assert read_notes(folder / "t") == {"update": "7"}
    assert torch.equal(read_tensors(folder / "t")["a"], torch.arange(3))


def test_one_flipped_bit_is_noticed_wherever_it_is(tmp_path):
    """Of finding 7: 40 of 40 were opened."""
    path = tmp_path / "t"
    write_tensors(path, {"weight": torch.randn(8, 4), "bias": torch.zeros(3)}, {"update": "7"})
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(ValueError, match="damaged or cut short"):
            read_tensors(path)


def test_without_a_checksum_it_opens_with_a_note(tmp_path, caplog):
    save_file({"a": torch.ones(2)}, tmp_path / "t")
    with caplog.at_level(logging.INFO):
        assert read_tensors(tmp_path / "t")["a"].tolist() == [1, 1]
        read_tensors(tmp_path / "t")
    assert [each.getMessage() for each in caplog.records] == [
        f"{tmp_path / 't'} has no checksum: it was not written by this version of rankshot"
    ]


def test_compared_once_as_long_as_it_stays(tmp_path, monkeypatch):
    path = tmp_path / "t"
    write_tensors(path, {"a": torch.ones(2)}, {})
    read_tensors(path)
    counted = []
    monkeypatch.setattr(tensors, "_check", lambda *given: counted.append(given))
    read_tensors(path)
    assert len(counted) == 0
    write_tensors(path, {"a": torch.zeros(2)}, {})
    read_tensors(path)
    assert len(counted) == 1


@pytest.mark.parametrize("content", [b"", b"1234567", b"\xff" * 8, (2**62).to_bytes(8, "little") + b"{}", bytes(100)])
def test_what_is_no_such_file(tmp_path, content):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(ValueError, match="is damaged or cut short"):
        read_tensors(tmp_path / "t")


def test_random_changes(tmp_path):
    path, random = tmp_path / "t", np.random.default_rng(0)
    save_file({"a": torch.ones(20), "b": torch.zeros(2, 2)}, path, {"x": "y"})  # without a checksum
    whole = path.read_bytes()
    for _ in range(300):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), 3):
            content[place] = random.integers(256)
        path.write_bytes(content[: random.integers(len(whole)) if random.random() < 0.2 else None])
        with contextlib.suppress(ValueError, OSError):
            read_tensors(path)
