"""A network passed on, from the shell."""

import pytest

from rankshot.cli.main import main
from rankshot.gallery import Embedder


@pytest.mark.parametrize("name", ["out.onnx", "out.pt2"])
def test_a_file(tmp_path, capsys, name):
    if name.endswith("onnx"):
        pytest.importorskip("onnxscript")
    assert main(["export", "conv4-omniglot", str(tmp_path / name)]) == 0
    told = capsys.readouterr().out
    assert f"{name}: images (B, 1, 28, 28) from 0 to 1, dark ink made bright -> (B, 64)" in told
    assert "of the network's" in told
    assert (tmp_path / name).stat().st_size > 400_000


def test_help_tells_what_is_in_the_file(capsys):
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert all(
        word in told for word in ("NAME.onnx", "rankshot.json", "mean and deviation", "EXIF", "onnx_without_rankshot")
    )


def test_a_folder(tmp_path, capsys):
    assert main(["export", "conv4-cub", str(tmp_path / "mine")]) == 0
    names = {path.name for path in (tmp_path / "mine").iterdir()}
    assert names == {
        "README.md",
        "classes.json",
        "config.json",
        "evaluation.json",
        "model.safetensors",
        "one_shot.json",
    }
    assert Embedder(tmp_path / "mine").fingerprint == Embedder("conv4-cub").fingerprint
    assert Embedder(tmp_path / "mine").one_shot == Embedder("conv4-cub").one_shot
    assert main(["export", "conv4-cub", str(tmp_path / "mine")]) == 1
    assert "mine exists already: name a new folder" in capsys.readouterr().err


def test_what_is_there_stays(tmp_path, capsys):
    (tmp_path / "out.pt2").write_text("mine")
    assert main(["export", "conv4-omniglot", str(tmp_path / "out.pt2")]) == 1
    assert "out.pt2 exists already: name a new file" in capsys.readouterr().err
    assert (tmp_path / "out.pt2").read_text() == "mine"


def test_a_folder_with_a_version(tmp_path):
    assert main(["export", "conv4-omniglot", str(tmp_path / "characters-v1.0")]) == 0
    assert (tmp_path / "characters-v1.0" / "model.safetensors").exists()


def test_what_cannot_be_exported(tmp_path, capsys):
    assert main(["export", str(tmp_path / "nothing"), str(tmp_path / "out.onnx")]) == 1
    assert main(["export", "conv4-cub", str(tmp_path / "out.tflite")]) == 1
    told = capsys.readouterr().err
    assert "holds no network" in told
    assert "out.tflite must end in .onnx or .pt2" in told
    assert not list(tmp_path.iterdir())
