"""A transformer in a folder: it comes back as it was, and what is damaged is refused."""

import json

import numpy as np
import pytest
import torch

from rankshot import RankingTransformer
from rankshot.adaptation.saved_transformer import ABOUT, MAP
from rankshot.losses import SmoothAPLoss
from rankshot.tensors import read_tensors, write_tensors

X, Y = np.random.default_rng(0).normal(size=(60, 5)), np.repeat(np.arange(6), 10)


def fitted(**settings):
    return RankingTransformer(**settings, held_out=None, max_iter=3, random_state=0).fit(X, Y)


@pytest.mark.parametrize("settings", [{}, {"hidden": 3}, {"n_components": 2}, {"loss": SmoothAPLoss()}], ids=str)
def test_it_comes_back_as_it_was(settings, tmp_path):
    before = fitted(**settings)
    if "loss" in settings:
        with pytest.warns(UserWarning, match="loss cannot be saved: what is opened has the usual value"):
            before.save_pretrained(tmp_path / "told")
        before.set_params(loss="map-dlm")
    after = RankingTransformer.from_pretrained(before.save_pretrained(tmp_path / "saved"))
    assert np.array_equal(after.transform(X), before.transform(X))
    assert (after.n_iter_, after.best_iter_, after.n_components) == (3, 3, before.n_components)
    assert list(after.get_feature_names_out()) == list(before.get_feature_names_out())
    np.testing.assert_allclose(*(each.partial_fit(X, Y).transform(X) for each in (before, after)))


def test_the_identity_and_what_was_seen(tmp_path):
    with pytest.warns(UserWarning, match="X is kept"):
        before = RankingTransformer(max_iter=16, random_state=1).fit(np.eye(8)[np.arange(48) % 8], np.arange(48) % 8)
    after = RankingTransformer.from_pretrained(before.save_pretrained(tmp_path / "saved"))
    assert after.is_identity_
    assert after.history_ == before.history_
    assert after.held_out_map_ == before.held_out_map_


def test_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    before = RankingTransformer(held_out=None, max_iter=3, random_state=0).fit(frame, Y)
    after = RankingTransformer.from_pretrained(before.save_pretrained(tmp_path / "saved"))
    assert after.feature_names_in_.tolist() == list("abcde")


def test_bad_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no transformer: there is no transformer.json in it"):
        RankingTransformer.from_pretrained(tmp_path)
    folder = fitted(hidden=3).save_pretrained(tmp_path / "saved")
    with pytest.raises(FileExistsError, match="exists already"):
        fitted().save_pretrained(folder)
    tensors, about = read_tensors(folder / MAP), (folder / ABOUT).read_text()
    for changed, message in (
        ({**tensors, "weight": tensors["weight"][:, :2]}, "'weight' must be"),
        ({**tensors, "outer": tensors["outer"].T.contiguous()}, "'outer' must be"),
        ({**tensors, "more": tensors["bias"]}, "should hold the weights of a map"),
        ({name: each for name, each in tensors.items() if name != "bias"}, "a part of its hidden layer is missing"),
        ({**tensors, "offset": torch.full_like(tensors["offset"], torch.nan)}, "no finite numbers"),
    ):
        write_tensors(folder / MAP, changed, {})
        with pytest.raises(ValueError, match=message):
            RankingTransformer.from_pretrained(folder)
    write_tensors(folder / MAP, tensors, {})
    for changed in ({"scale": "x"}, {"settings": {"start": "lda"}}, {"history": 3}):
        (folder / ABOUT).write_text(json.dumps({**json.loads(about), **changed}))
        with pytest.raises(ValueError, match=r"transformer\.json|'start' parameter"):
            RankingTransformer.from_pretrained(folder)
