"""The authors' padded lists, against a literal account of what their code does with them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rankshot.losses import RankingLoss
from rankshot.ranking import dlm, ssvm
from rankshot.reproduce.padded_lists import PaddedListsLoss, padded_rows


def literally(similarities, labels):
    """Of every query the highest scores of its two lists, which are filled up with index 0."""
    size = len(labels)
    lists = {
        side: [[j for j in range(size) if j != i and (labels[i] == labels[j]) == side] for i in range(size)]
        for side in (True, False)
    }
    found = []
    for i in range(size):
        sides = []
        for side in (True, False):
            own, longest = lists[side][i], max(map(len, lists[side]))
            filled = own + [0] * (longest - len(own))
            sides.append(sorted((float(similarities[i, j]) for j in filled), reverse=True)[: len(own)])
        found.append(sides)
    return found


batches = st.lists(st.integers(0, 3), min_size=3, max_size=12)


@given(batches, st.integers(0, 2**20))
def test_rows_are_those_of_the_padded_lists(labels, seed):
    labels = torch.tensor(labels)
    vectors = torch.nn.functional.normalize(torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(seed)))
    similarities = vectors @ vectors.T
    scores, relevant, rankable = padded_rows(similarities, labels)
    for i, (above, below) in enumerate(literally(similarities, labels)):
        assert bool(rankable[i]) == bool(above and below)
        assert scores[i, : len(labels) - 1].tolist() == above + below
        assert relevant[i].tolist() == [column < len(above) for column in range(len(labels))]


@pytest.mark.parametrize(("framework", "objective"), [("ssvm", ssvm), ("dlm", dlm)])
@given(labels=batches, seed=st.integers(0, 2**20))
def test_the_loss_is_the_objective_of_these_rows(framework, objective, labels, seed):
    labels = torch.tensor(labels)
    embeddings = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    embeddings.requires_grad_()
    loss = PaddedListsLoss(framework, alpha=3.0)(embeddings, labels)
    vectors = torch.nn.functional.normalize(embeddings.detach())
    rows, expected = literally(vectors @ vectors.T, labels), []
    for above, below in rows:
        if above and below:
            scores = torch.tensor([above + below], dtype=torch.float64)
            relevance = torch.tensor([[True] * len(above) + [False] * len(below)])
            expected.append(objective(scores, relevance, alpha=3.0).loss)
    assert loss.item() == pytest.approx(sum(expected).item() / len(expected) if expected else 0.0, abs=1e-9)


def test_without_padding_it_is_the_ranking_loss_with_its_gradient():
    labels = torch.arange(4).repeat_interleave(3)  # lists of one length need no padding
    embeddings = torch.randn(12, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    ours, theirs = RankingLoss.paper("ssvm", alpha=1.0), PaddedListsLoss("ssvm", alpha=1.0)
    values, gradients = zip(
        *((loss, torch.autograd.grad(loss, embeddings)[0]) for loss in (f(embeddings, labels) for f in (ours, theirs))),
        strict=True,
    )
    assert values[0].item() == pytest.approx(values[1].item(), abs=1e-12)
    assert torch.allclose(*gradients, atol=1e-12)


def test_padding_changes_the_gradient():
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2])
    embeddings = torch.randn(8, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    gradients = [
        torch.autograd.grad(loss(embeddings, labels), embeddings)[0].flatten()
        for loss in (RankingLoss.paper("ssvm", alpha=1.0), PaddedListsLoss("ssvm", alpha=1.0))
    ]
    assert torch.cosine_similarity(*gradients, dim=0) < 0.999


def test_references_are_refused():
    with pytest.raises(ValueError, match="no references"):
        PaddedListsLoss()(torch.eye(4), torch.tensor([0, 0, 1, 1]), None, torch.eye(4), torch.tensor([0, 0, 1, 1]))
