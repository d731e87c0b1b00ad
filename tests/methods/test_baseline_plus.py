"""The last layer, learned anew, against torch's own gradient descent, episode by episode."""

import torch
from methods.made import made


def test_the_layer_is_learned_from_the_labelled_images(device):
    model, _ = made("baseline++")
    support, queries = torch.randn(2, 3, 2, 5, device=device), torch.randn(2, 4, 5, device=device)
    scores = model.class_scores(support, queries)
    normal = torch.nn.functional.normalize
    for episode in range(2):
        images, right = normal(support[episode].flatten(0, 1), dim=-1), torch.tensor([0, 0, 1, 1, 2, 2], device=device)
        start = normal(normal(support[episode], dim=-1).mean(1), dim=-1)
        weights = torch.nn.Parameter(start.clone())
        optimiser = torch.optim.SGD([weights], lr=0.01)
        for _ in range(200):  # 100 passes through 6 images, 4 at a time
            optimiser.zero_grad()
            logits = 10 * images @ normal(weights, dim=-1).T
            torch.nn.functional.cross_entropy(logits, right).backward()
            optimiser.step()
        expected = 10 * normal(queries[episode], dim=-1) @ normal(weights, dim=-1).T
        torch.testing.assert_close(scores[episode], expected.detach(), rtol=1e-3, atol=1e-3)
        assert not torch.allclose(weights, start, atol=1e-3)
