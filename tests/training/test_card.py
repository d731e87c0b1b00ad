"""The model card tells what lies in the folder."""

import json

import torch

from rankshot.training import TrainConfig, run_folder
from rankshot.training.card import write_card

NETWORK = {"name": "conv4", "in_channels": 3, "filters": 4}


def test_card(tmp_path):
    run_folder.begin(tmp_path, TrainConfig.of(alpha=3.0, updates=500), NETWORK, resume=False)
    run_folder.save_model(tmp_path, {"a": torch.zeros(1)}, 400, {"retrieval 20-way": {"mean": 0.8123, "interval": 0.0061}})
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: rankshot\n")
    assert "conv4 trained on glyphs by map-dlm" in card
    assert "after 400 of 500 updates, the best by validation so far" in card
    assert "## Training data\n\ndrawn by rankshot from the fonts" in card
    assert "| retrieval 20-way | 81.23 ± 0.61 |" in card
    assert "- alpha: 3.0" in card
    assert "(B, 3, H, W)" in card
    assert "## On test classes" not in card

    tested = {"data": "glyphs", "split": "test", "episodes": 50, "norm": "batch", "date": "2020-01-01", "update": "400"}
    tasks = {"1-shot 5-way": {"mean": 0.5, "interval": 0.01}}
    (tmp_path / "evaluation.json").write_text(json.dumps({**tested, "tasks": tasks}))
    write_card(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "## On test classes of glyphs\n\n50 episodes a task, batch norm by batch statistics, 2020-01-01" in card
    assert "| 1-shot 5-way | 50.00 ± 1.00 |" in card

    for other in ({**tested, "tasks": tasks, "update": "300"}, {}, {"tasks": 3}):  # of other weights, or damaged
        (tmp_path / "evaluation.json").write_text(json.dumps(other))
        write_card(tmp_path)
        assert "## On test classes" not in (tmp_path / "README.md").read_text()
    (tmp_path / "evaluation.json").write_text("{")
    write_card(tmp_path)


def test_whose_images(tmp_path):
    for data, terms in (
        ("cub", "its terms allow non-commercial research"),
        ("my/pictures", "Images of the person who trained"),
    ):
        folder = tmp_path / data.replace("/", "-")
        folder.mkdir()
        run_folder.begin(folder, TrainConfig.of(data=data, split="trainval", validate_every=0), NETWORK, resume=False)
        run_folder.save_model(folder, {"a": torch.zeros(1)}, 800, {})
        card = (folder / "README.md").read_text()
        assert terms in card
        assert "after 800 of 800 updates, the last" in card
