"""Run by a process of its own where there is no GPU: Triton then interprets its kernels, which it decides when imported."""

import sys

import torch

from rankshot.ranking.objectives import BOTH, of_each_sign, on_sides
from rankshot.ranking.pool import Counts
from rankshot.ranking.sorted_pool import split
from rankshot.ranking.sorted_rows import Ranking, objective_rows

FRAMEWORKS = [("dlm", 1.0, 10.0), ("dlm", 0.01, 1.0), ("ssvm", 1.0, 10.0), ("ssvm", 0.5, 1.0)]
SHIFTS = [(0.0,), (-0.02, 0.0, 0.03)]


def compare(queries, items, classes, metric, framework, epsilon, alpha, shifts, device, signs=(1,), grid=None, share=1.0):
    """One program a query, in float32, against sorted sides and a solver in float64.

    signs  whose mean it is; where there are two, the negative one has alpha 1
    grid   scores are multiples of this, so that many are equal
    share  of the weights that must agree: among very many items one may have two places that cost the same but for rounding
    """
    random = torch.Generator().manual_seed(items)
    scores = torch.rand(queries, items, generator=random)
    if grid:
        scores = (scores / grid).round() * grid
    labelled = torch.randint(classes, (queries, items), generator=random) == 0
    labelled[0], labelled[-1] = False, True  # queries that cannot be ranked
    item_ids = torch.randint(items, (items,), generator=random)  # some of them twice
    ids = torch.randint(items, (queries,), generator=random)
    valid = ids[:, None] != item_ids
    relevant, irrelevant = labelled & valid, ~labelled & valid
    updates = of_each_sign(framework, metric, epsilon, alpha, signs[0] if len(signs) == 1 else BOTH)
    rankings = [Ranking(chosen, shift, 1 / len(shifts) / len(signs)) for chosen in updates for shift in shifts]
    counts = Counts(relevant.sum(-1), irrelevant.sum(-1))
    found = objective_rows(
        scores.to(device, copy=True),
        labelled.to(device),
        (ids.to(device), item_ids.to(device)),
        Counts(*(side.to(device) for side in counts)),
        int(counts.relevant.max()),
        rankings,
    )
    loss, weights = (torch.zeros_like(each, dtype=torch.float64, device="cpu") for each in found)
    for chosen, shift, part in rankings:
        raised = scores.double() + shift * relevant
        each = on_sides(split(raised, relevant, irrelevant), raised * valid, chosen)
        loss += part * each.loss
        weights += part * each.weights.where(valid, 0.0)
    torch.testing.assert_close(found.loss.cpu().double(), loss, atol=1e-4 / epsilon, rtol=1e-4)
    agree = torch.isclose(found.weights.cpu().double(), weights, atol=1e-4 / epsilon, rtol=1e-4).double().mean()
    assert agree >= share, f"{agree:.4%} of the weights agree: {metric}, {framework}, {items} items"


def compare_some(device):
    for items, queries, classes in ((40, 4, 4), (12, 6, 2), (130, 3, 3)):
        for metric in ("ap", "ndcg", "auc", "rr", "precision@1"):
            for framework in FRAMEWORKS if metric == "ap" else FRAMEWORKS[1:3]:
                for shifts in SHIFTS if metric == "ap" else SHIFTS[1:]:
                    compare(queries, items, classes, metric, *framework, shifts, device)
        for metric in ("ap", "ndcg", "precision@3"):
            compare(queries, items, classes, metric, "dlm", 1.0, 1.0, SHIFTS[1], device, signs=(-1,))
            compare(queries, items, classes, metric, "dlm", 1.0, 10.0, SHIFTS[1], device, signs=(1, -1))
        compare(queries, items, classes, "precision@3", "ssvm", 1.0, 2.0, SHIFTS[0], device)
    compare(4, 1, 2, "ap", "dlm", 1.0, 10.0, (0.0,), device)
    for grid in (0.125, 0.5):  # numbers without rounding: rankings that cost the same cost the same to the last bit
        compare(6, 30, 3, "precision@1", "ssvm", 1.0, 1.0, (0.0,), device, grid=grid)
        compare(6, 30, 3, "precision@1", "dlm", 1.0, 10.0, (0.0,), device, grid=grid)
        compare(6, 30, 3, "precision@4", "dlm", 1.0, 1.0, (0.0,), device, signs=(-1,), grid=grid)
        compare(6, 30, 3, "precision@4", "dlm", 1.0, 10.0, (0.0,), device, signs=(1, -1), grid=grid)
        compare(6, 30, 3, "ap", "dlm", 1e-6, 1.0, (0.0,), device, grid=grid)
    compare(3, 700, 3, "ap", "dlm", 0.01, 1.0, SHIFTS[0], device, share=0.998)  # several blocks


def compare_few(device):
    """Each metric and each framework once; equal scores; several blocks; the dynamic programme; a single item."""
    for metric, framework in zip(("ap", "ndcg", "auc", "rr"), FRAMEWORKS, strict=True):
        compare(6, 12, 2, metric, *framework, SHIFTS[1], device)
    compare(3, 600, 40, "ap", *FRAMEWORKS[1], SHIFTS[0], device, share=0.998)
    compare(4, 12, 2, "ap", "dlm", 1.0, 1.0, SHIFTS[1], device, signs=(-1,))
    compare(4, 12, 2, "ap", "dlm", 1.0, 10.0, SHIFTS[1], device, signs=(1, -1))
    compare(4, 1, 2, "ap", "dlm", 1.0, 10.0, (0.0,), device)
    compare(6, 30, 3, "precision@1", "ssvm", 1.0, 1.0, (0.0,), device, grid=0.125)


def compare_many(device):
    """As many items as only a GPU takes in reasonable time."""
    for items in (1024, 2000, 4096):
        for framework in FRAMEWORKS:
            for classes in (3, 16, 300):
                compare(16, items, classes, "ap", *framework, (-0.01, 0.01), device, share=0.995)
        for grid in (1 / 64, 1 / 1024):
            compare(16, items, 16, "ap", *FRAMEWORKS[1], SHIFTS[0], device, grid=grid, share=0.999)


if __name__ == "__main__":
    {"few": compare_few, "some": compare_some}[sys.argv[1]]("cpu")
    print("agrees")
