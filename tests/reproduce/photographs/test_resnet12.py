"""ResNet-12 on a few small pictures: it learns, goes on from another's network, and heads learn on what it embeds."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from PIL import Image

from rankshot import data
from rankshot.gallery import Embedder
from rankshot.reproduce.photographs import resnet12, resnet12_heads, resnet12_model, tables
from rankshot.reproduce.photographs.resnet12 import Batches, Trial, cropped, rate_at
from rankshot.reproduce.photographs.stages import stages

SMALL = {"updates": 3, "classes": 3, "per_class": 2, "sizes": ((0.5, 16), (1.0, 20))}


@pytest.fixture(scope="module")
def mini_imagenet(tmp_path_factory):
    """A root where so few pictures lie in the place of mini-ImageNet."""
    folder, random = tmp_path_factory.mktemp("mini"), np.random.default_rng(0)
    for split, classes in (("train", 3), ("val", 16), ("test", 20)):
        for name in range(classes):
            colour = random.integers(0, 255, 3)
            for number in range(4 if split == "train" else 20):
                path = folder / "pictures" / split / f"{split}{name}" / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(np.clip(colour + random.normal(0, 40, (16, 16, 3)), 0, 255).astype("uint8")).save(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSHOT_DATA", str(folder / "root"))
        data.prepared(str(folder / "pictures"), size=16).rename(folder / "root" / "mini-imagenet")
        patch.setattr(resnet12, "EPISODES", 3)
        patch.setattr(resnet12_heads, "EPISODES", 3)
        patch.setattr(resnet12_heads, "TRIAL_EPISODES", 3)
        patch.setattr(resnet12_heads, "CLASSES", 3)
        patch.setattr(resnet12_heads, "BATCH_CLASSES", 3)
        patch.setattr(resnet12_heads, "BATCH", 6)
        yield folder


@pytest.mark.slow
def test_from_nothing_on_with_ranking_and_a_head(mini_imagenet, tmp_path, monkeypatch):
    trials = resnet12.TRIALS
    monkeypatch.setitem(trials, "base", replace(trials["base"], **SMALL))
    monkeypatch.setitem(trials, "on-distil-images", replace(trials["on-distil-images"], **SMALL))
    runs, results = tmp_path / "runs", tmp_path / "results"
    with pytest.raises(FileNotFoundError, match="on-distil-images goes on from base, and there is no"):
        resnet12.perform("on-distil-images", runs, results)
    for name in ("base", "on-distil-images"):
        resnet12.perform(name, runs, results)
    record = json.loads(resnet12.record_of("on-distil-images", results).read_text())
    assert (record["start"], record["updates"], record["epochs"]) == ("base", 3, 3 * 6 / 12)
    assert set(record["test"]) == {"ap", "prototype", "logistic"}
    few = [resnet12_heads.Trial(head) for head in ("none", "centred")]
    few += [resnet12_heads.Trial("scale", "map-dlm", 0.01, updates) for updates in (2, 3)]
    monkeypatch.setattr(resnet12_heads, "trials", lambda: few)
    resnet12_heads.perform("base", runs, results)
    page = tables.page(results)
    assert "| `on-distil-images-0` | images, on the projection | 3 |" in page
    best = max(few[2:], key=lambda trial: resnet12_heads.retrieved(of_trial(trial, results)))
    assert page.count("| `base-0` | scale |") == 1
    assert f"| `base-0` | scale | map-dlm, rate 0.01, {best.updates} updates |" in page
    (stage,) = [each for each in stages(results, runs, {}, 1) if each.name == "resnet12-heads/base"]
    assert stage.done() == (4 + 3, 4 + 3)
    resnet12_model.perform(["base", "on"], runs, results)
    made = json.loads(resnet12_model.record_of(results).read_text())
    assert (made["weights"], made["trial"]) == ("base", asdict(best))
    assert set(made["results"]["prototype"]) == {"1-shot 5-way", "5-shot 5-way", "retrieval 20-way"}
    model = Embedder(str(runs / resnet12_model.NAME))
    assert model.dimensions == 640
    assert (runs / resnet12_model.NAME / "one_shot.json").is_file()
    with pytest.raises(FileNotFoundError, match="heads learn from what on embeds, and there is no"):
        resnet12_heads.perform("on", runs, results)


def of_trial(trial, results):
    return json.loads(resnet12_heads.record_of("base", trial, results).read_text())


def test_batches(mini_imagenet):
    batches = Batches(Trial(views=4, turned=2, classes=2, per_class=3), seed=0)
    pixels, known, image, quarters = batches.draw(0, 32)
    assert pixels.shape == (24, 3, 32, 32)
    assert quarters.tolist() == [0] * 12 + [1] * 6 + [2] * 6
    assert known.unique().numel() == 2
    assert all((known[image == one] == known[one]).all() for one in range(6))


def test_crops_are_parts_of_the_picture():
    """Of a ramp from left to right: within its range before colours change, and not all alike."""
    ramp = torch.linspace(0.25, 0.75, 48).expand(16, 3, 48, 48)
    parts = cropped(ramp, 0.35, 24, torch.Generator().manual_seed(0))
    assert parts.shape == (16, 3, 24, 24)
    assert parts.isfinite().all()
    rises = (parts[..., -1] - parts[..., 0]).mean((1, 2))
    assert (rises > 0).any()
    assert (rises < 0).any()  # mirrored


def test_the_rate_rises_and_falls():
    trial = Trial(updates=1000, learning_rate=0.1)
    assert rate_at(trial, 0) < rate_at(trial, 100) < rate_at(trial, 199)
    assert rate_at(trial, 300) > rate_at(trial, 700) > rate_at(trial, 999) > 0
