"""A loss and its definition, written out image by image, on the same batch: values and gradients."""

import torch

LABELS = [0, 0, 0, 1, 1, 1, 1, 2, 2, 5, 0]  # uneven, and 5 is alone


def agrees(loss, definition, device, labels=LABELS):
    random = torch.Generator().manual_seed(0)
    embeddings = torch.randn(len(labels), 4, generator=random, dtype=torch.float64).to(device)
    results = []
    for function in (loss, definition):
        own = embeddings.clone().requires_grad_()
        value = function(own, torch.tensor(labels, device=device))
        value.backward()
        results.append((value.detach(), own.grad))
    torch.testing.assert_close(*results)
    assert results[0][1].abs().sum() > 0


def same_under_autocast(loss, device):
    embeddings, labels = torch.randn(12, 4, device=device), torch.arange(12, device=device) % 3
    expected = loss(embeddings, labels)
    with torch.autocast(device, dtype=torch.bfloat16):
        torch.testing.assert_close(loss(embeddings, labels), expected)


def nothing_to_learn(loss, device):
    """From images that are alone in their classes, and from a single image: a value that has no say."""
    for labels in (torch.arange(5, device=device), torch.zeros(1, dtype=torch.long, device=device)):
        embeddings = torch.randn(len(labels), 4, device=device, requires_grad=True)
        value = loss(embeddings, labels)
        value.backward()
        assert value == 0
        assert (embeddings.grad == 0).all()


def distance(one, other):
    return (one / one.norm() - other / other.norm()).square().sum()


def others(labels, index):
    """(of its class, of other classes) without itself."""
    rest = [each for each in range(len(labels)) if each != index]
    return [each for each in rest if labels[each] == labels[index]], [
        each for each in rest if labels[each] != labels[index]
    ]
