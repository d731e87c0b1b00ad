"""A training run of a second."""

from rankshot.training import TrainConfig

SMALL = TrainConfig.of(
    filters=8,
    batch_classes=4,
    batch_size=32,
    updates=24,
    log_every=4,
    validate_every=8,
    checkpoint_every=6,
    validation_episodes=20,
    device="cpu",
)


def small(**settings):
    """The same with some settings changed."""
    return SMALL.changed(**settings)
