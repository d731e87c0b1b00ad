"""Run by a process of its own where there is no GPU: Triton then interprets its kernel, which it decides when imported."""

import sys

import torch

from rankshot.ranking.fused_rows import objective_rows
from rankshot.ranking.objectives import on_sides, settings
from rankshot.ranking.sorted_pool import split

FRAMEWORKS = [("dlm", 1.0, 10.0), ("dlm", 0.01, 1.0), ("ssvm", 1.0, 10.0), ("ssvm", 0.5, 1.0)]
SHIFTS = [(0.0,), (-0.02, 0.0, 0.03)]


def compare(queries, items, classes, metric, framework, epsilon, alpha, shifts, device, grid=None, share=1.0):
    """One program a query against sorted sides and a solver; both in float32.

    grid   scores are multiples of this, so that many are equal
    share  of the weights that must agree: among very many items one may have two places that cost the same but for rounding
    """
    random = torch.Generator().manual_seed(items)
    scores = torch.rand(queries, items, generator=random)
    if grid:
        scores = (scores / grid).round() * grid
    relevant = torch.randint(classes, (queries, items), generator=random) == 0
    valid = torch.rand(queries, items, generator=random) < 0.9
    relevant &= valid
    irrelevant = valid & ~relevant
    relevant[0], irrelevant[-1] = False, False  # queries that cannot be ranked
    scores, relevant, irrelevant = (each.to(device) for each in (scores, relevant, irrelevant))
    chosen = settings(framework, metric, epsilon, alpha)
    found = objective_rows(scores, relevant, irrelevant, chosen, shifts)
    ranked = relevant | irrelevant
    loss, weights = torch.zeros_like(found.loss), torch.zeros_like(found.weights)
    for shift in shifts:
        raised = scores + shift * relevant
        each = on_sides(split(raised, relevant, irrelevant), raised * ranked, chosen)
        loss += each.loss / len(shifts)
        weights += each.weights.where(ranked, 0.0) / len(shifts)
    torch.testing.assert_close(found.loss, loss, atol=1e-4 / epsilon, rtol=1e-4)
    agree = torch.isclose(found.weights, weights, atol=1e-4 / epsilon, rtol=1e-4).double().mean()
    assert agree >= share, f"{agree:.4%} of the weights agree"


def compare_some(device):
    for items, queries, classes in ((40, 4, 4), (12, 6, 2), (130, 3, 3)):
        for metric in ("ap", "ndcg", "auc", "rr"):
            for framework in FRAMEWORKS if metric == "ap" else FRAMEWORKS[1:3]:
                for shifts in SHIFTS if metric == "ap" else SHIFTS[1:]:
                    compare(queries, items, classes, metric, *framework, shifts, device)
    compare(4, 1, 2, "ap", "dlm", 1.0, 10.0, (0.0,), device)
    for grid in (0.125, 0.5):  # AUC: every step of its loss is the same, so that equal costs are equal to the last bit
        compare(6, 30, 3, "auc", "ssvm", 1.0, 1.0, (0.0,), device, grid=grid)
        compare(6, 30, 3, "auc", "dlm", 1.0, 10.0, (0.0,), device, grid=grid)
        compare(6, 30, 3, "ap", "dlm", 1e-6, 1.0, (0.0,), device, grid=grid)


def compare_few(device):
    """Each metric and each framework once; equal scores; a single item."""
    for metric, framework in zip(("ap", "ndcg", "auc", "rr"), FRAMEWORKS, strict=True):
        compare(6, 12, 2, metric, *framework, SHIFTS[1], device)
    compare(4, 40, 4, "ap", *FRAMEWORKS[1], SHIFTS[0], device)
    compare(4, 1, 2, "ap", "dlm", 1.0, 10.0, (0.0,), device)
    compare(6, 30, 3, "auc", "ssvm", 1.0, 1.0, (0.0,), device, grid=0.125)


if __name__ == "__main__":
    {"few": compare_few, "some": compare_some}[sys.argv[1]]("cpu")
    print("agrees")
