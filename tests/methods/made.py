"""Small systems for tests."""

from rankshot.methods import METHODS, Context, make_method
from rankshot.models.network import build
from rankshot.preprocess import Preprocess

EMBEDDER = {"name": "conv4", "in_channels": 1, "filters": 4}


SMALL = Preprocess(1, 16, 16)


def made(name, *, batch_classes=3, batch_size=12, embedder=EMBEDDER, preprocess=SMALL, **settings):
    """(network, method) for images of 16x16."""
    network = build(embedder, preprocess)
    context = Context(network.embedding_dim, 10, batch_classes, batch_size)
    method = make_method(METHODS.choose(name, settings), context)
    return method.network(network), method
