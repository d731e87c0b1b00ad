"""The baselines that classify learn from any images."""

import torch
from methods.made import made


def test_batches_are_any_images():
    for name in ("nearest", "baseline++"):
        model, method = made(name, batch_size=50)
        given_labels = torch.arange(200) // 20
        sampler = method.sampler(given_labels, seed=0)
        drawn = torch.stack([sampler.draw(number) for number in range(40)])
        assert torch.equal(sampler.draw(3), drawn[3])
        assert len(given_labels[drawn[0]].unique()) > 5
        assert len(drawn.unique()) == 200
        loss, embeddings = method.learn(model, torch.rand(50, 1, 16, 16), given_labels[drawn[0]])
        torch.testing.assert_close(loss, method.loss(embeddings, given_labels[drawn[0]]))


def test_a_softmax_of_a_linear_layer():
    model, method = made("nearest")
    labels = torch.arange(12) % 10
    loss, embeddings = method.learn(model, torch.rand(12, 1, 16, 16), labels)
    weights, bias = method.loss.head.weight, method.loss.head.bias
    chances = [(weights @ x + bias).softmax(0)[label] for x, label in zip(embeddings, labels, strict=True)]
    torch.testing.assert_close(loss, -torch.stack(chances).log().mean())


def test_the_nearest_labelled_image_answers(device):
    model, _ = made("nearest")
    support, queries = torch.randn(2, 3, 4, 5, device=device), torch.randn(2, 6, 5, device=device)
    scores = model.class_scores(support, queries)
    for episode in range(2):
        for query in range(6):
            for label in range(3):
                x = queries[episode, query]
                expected = max(torch.dot(x, each) / x.norm() / each.norm() for each in support[episode, label])
                torch.testing.assert_close(scores[episode, query, label], expected)
