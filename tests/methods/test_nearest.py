"""The baselines that classify learn from any images."""

import torch
from methods.made import made


def test_batches_are_any_images():
    for name in ("nearest", "baseline++"):
        model, method = made(name, batch_size=50)
        given_labels = torch.arange(200) // 20
        sampler = method.sampler(given_labels, _Given(batch_size=50), seed=0)
        drawn = torch.stack([sampler.draw(number) for number in range(40)])
        assert torch.equal(sampler.draw(3), drawn[3])
        assert len(given_labels[drawn[0]].unique()) > 5
        assert len(drawn.unique()) == 200
        loss, embeddings = method.learn(model, torch.rand(50, 1, 16, 16), given_labels[drawn[0]])
        torch.testing.assert_close(loss, method.loss(embeddings, given_labels[drawn[0]]))


class _Given:
    def __init__(self, batch_size):
        self.batch_size = batch_size
