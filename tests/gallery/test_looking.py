"""Which part of a picture makes it like another."""

import numpy as np
import torch
from torch import nn

from rankshot.gallery import Embedder
from rankshot.gallery.looking import CELLS, similarity_map
from rankshot.preprocess import Preprocess


class Corner(nn.Module):
    """Sees the colours of one corner, and nothing else."""

    def forward(self, images):
        return images[:, :, -8:, :8].mean((2, 3)) + 0.01


def test_it_is_the_part_that_the_network_sees():
    embedder = Embedder(Corner(), Preprocess(3, 48, 48))
    picture = np.zeros((3, 48, 48), np.uint8)
    picture[0, 40:, :8] = 255  # a red corner, in a picture that is green
    picture[1, :40] = 200
    picture[1, 40:, 8:] = 200
    red = torch.nn.functional.normalize(torch.tensor([1.0, 0.01, 0.01]), dim=0).numpy()
    falls = similarity_map(embedder, picture, red)
    assert falls.shape == (CELLS, CELLS)
    assert np.unravel_index(falls.argmax(), falls.shape) == (CELLS - 1, 0)
    assert falls[CELLS - 1, 0] > 0.5
    far = falls[: CELLS - 2, 2:]
    assert np.abs(far).max() < 1e-6


def test_pictures_that_are_not_square():
    embedder = Embedder(Corner(), Preprocess(3, 30, 61))
    falls = similarity_map(embedder, np.full((3, 30, 61), 9, np.uint8), np.array([1, 0, 0], np.float32))
    assert np.abs(falls).max() < 1e-6  # covered by its own colour, it is the same
