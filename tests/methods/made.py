"""Small systems for tests."""

from rankshot.methods import Given, system
from rankshot.models.pretrained import build

EMBEDDER = {"name": "conv4", "in_channels": 1, "filters": 4}


def made(name, *, options=(), batch_classes=3, batch_size=12, embedder=EMBEDDER, dimensions=4, **settings):
    """(network, method) for images of 16x16."""
    given = Given(embedder, dimensions, 10, batch_classes, batch_size, {"options": options, **settings})
    return build(system(name).network(given)), system(name)(given)
