"""The last layer, learned anew, against torch's own gradient descent, episode by episode."""

import pytest
import torch
from methods.made import made

from rankshot.fewshot import Classification, Retrieval


def test_it_is_trained_by_cosines():
    model, method = made("baseline++", scale=4)
    labels = torch.arange(12) % 10
    loss, embeddings = method.learn(model, torch.rand(12, 1, 16, 16), labels)
    (weights,) = method.loss.parameters()
    cosines = [[torch.dot(x, w) / x.norm() / w.norm() for w in weights] for x in embeddings]
    expected = torch.nn.functional.cross_entropy(4 * torch.stack([torch.stack(row) for row in cosines]), labels)
    torch.testing.assert_close(loss, expected)
    tasks = [Classification(5, 1), Classification(20, 1), Retrieval(20)]
    assert method.decisive(tasks) == 1  # it is made to classify


@pytest.mark.parametrize(("passes", "rate", "scale"), [(100, 0.01, 10), (7, 0.5, 2)])
def test_the_layer_is_learned_from_the_labelled_images(device, passes, rate, scale):
    model, _ = made("baseline++", passes=passes, rate=rate, scale=scale)
    support, queries = torch.randn(2, 3, 2, 5, device=device), torch.randn(2, 4, 5, device=device)
    scores = model.class_scores(support, queries)
    normal = torch.nn.functional.normalize
    for episode in range(2):
        images, right = normal(support[episode].flatten(0, 1), dim=-1), torch.tensor([0, 0, 1, 1, 2, 2], device=device)
        start = normal(normal(support[episode], dim=-1).mean(1), dim=-1)
        weights = torch.nn.Parameter(start.clone())
        optimiser = torch.optim.SGD([weights], lr=rate)
        for _ in range(2 * passes):  # through 6 images, 4 at a time
            optimiser.zero_grad()
            logits = scale * images @ normal(weights, dim=-1).T
            torch.nn.functional.cross_entropy(logits, right).backward()
            optimiser.step()
        expected = scale * normal(queries[episode], dim=-1) @ normal(weights, dim=-1).T
        torch.testing.assert_close(scores[episode], expected.detach(), rtol=1e-3, atol=1e-3)
        assert not torch.allclose(weights, start, atol=1e-3)


def test_embeddings_that_are_zero():
    """A class of them has no direction, and is not learned."""
    model, _ = made("baseline++")
    support = torch.randn(1, 3, 2, 5)
    support[0, 1] = 0
    scores = model.class_scores(support, torch.randn(1, 4, 5))
    assert scores.isfinite().all()
    assert (scores[0, :, 1] == 0).all()
    assert scores[0, :, [0, 2]].abs().min() > 0
