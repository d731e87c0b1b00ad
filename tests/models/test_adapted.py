"""A network with a map of vectors behind it: embedded, saved, exported as one."""

import json

import numpy as np
import pytest
import torch

from rankshot import Embedder, Preprocess, RankingTransformer, from_pretrained, save_pretrained, wrap
from rankshot.models import Conv4


@pytest.fixture
def network():
    torch.manual_seed(0)
    return wrap(Conv4(1, 8), preprocess=Preprocess(1, 28, 28)).eval()


def images(count=24):
    return (torch.rand(count, 1, 28, 28, generator=torch.Generator().manual_seed(1)) * 255).to(torch.uint8).numpy()


@pytest.mark.parametrize("settings", [{}, {"n_components": 4}, {"hidden": 5}], ids=str)
def test_vectors_are_those_of_the_network_mapped(network, tmp_path, settings):
    vectors = Embedder(network)(images())
    transformer = RankingTransformer(**settings, held_out=None, max_iter=3, random_state=0).fit(vectors, np.arange(24) % 4)
    expected = transformer.transform(vectors)
    adapted = transformer.behind(network)
    assert adapted.embedding_dim == expected.shape[1]
    np.testing.assert_allclose(Embedder(adapted)(images()), expected, atol=1e-5)
    again = from_pretrained(save_pretrained(adapted, tmp_path / "saved"))
    np.testing.assert_allclose(Embedder(again)(images()), expected, atol=1e-5)


def test_as_onnx(network, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    vectors = Embedder(network)(images())
    transformer = RankingTransformer(hidden=3, held_out=None, max_iter=3, random_state=0).fit(vectors, np.arange(24) % 4)
    Embedder(transformer.behind(network)).export(tmp_path / "adapted.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "adapted.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"images": images().astype(np.float32) / 255})
    np.testing.assert_allclose(found, transformer.transform(vectors), atol=1e-4)
    about = json.loads(session.get_modelmeta().custom_metadata_map["rankshot"])
    assert about["dimensions"] == found.shape[1]


def test_a_network_of_other_dimensions(network):
    transformer = RankingTransformer(held_out=None, max_iter=3).fit(
        np.random.default_rng(0).normal(size=(8, 3)), [0, 1] * 4
    )
    with pytest.raises(ValueError, match="the map takes 3 dimensions, and the network gives 8"):
        transformer.behind(network)
    with pytest.raises(ValueError, match="does not tell what pictures it takes"):
        transformer.behind(torch.nn.Flatten())
