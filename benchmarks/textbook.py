"""The baseline: the dynamic programme of Song et al. (2016) as a textbook writes it, one query and one cell at a time.

A state (k, n) means that k relevant and n irrelevant items have been ranked from the top; the next item is the next best
of either side. Ranking the k-th relevant item below n irrelevant ones adds its term of F and of the AP loss; the best
way into each state is kept and followed back. O(P N) cells a query, a constant number of NumPy operations a cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def loss_augmented_ranking(scores: Array, relevance: Array, valid: Array, epsilon: float = 1.0) -> Array:
    """(Q, G) arrays -> (Q, G) int64: opponents above in the ranking that maximises F + epsilon * (1 - AP)."""
    above = np.zeros(scores.shape, dtype=np.int64)
    for query in range(len(scores)):
        relevant = np.flatnonzero(relevance[query] & valid[query])
        irrelevant = np.flatnonzero(~relevance[query] & valid[query])
        relevant = relevant[np.argsort(-scores[query, relevant], kind="stable")]
        irrelevant = irrelevant[np.argsort(-scores[query, irrelevant], kind="stable")]
        above_relevant = _best_interleaving(scores[query, relevant], scores[query, irrelevant], epsilon)
        above[query, relevant] = above_relevant
        for j, item in enumerate(irrelevant):
            above[query, item] = np.sum(above_relevant <= j)
    return above


def _best_interleaving(s: Array, t: Array, epsilon: float) -> Array:
    """Sorted scores of the two sides -> irrelevant items above each relevant one."""
    P, N = len(s), len(t)
    best = np.zeros((P + 1, N + 1))  # best[k, n]: k relevant items placed, the k-th with at most n irrelevant ones above
    lowered = np.zeros((P + 1, N + 1), dtype=np.int64)  # how many are above in that best
    for k in range(1, P + 1):
        gain = 0.0  # of the k-th relevant item for standing below n irrelevant ones
        for n in range(N + 1):
            if n > 0:
                gain += 2 * (t[n - 1] - s[k - 1]) / (P * N) + epsilon * k / (P * (k + n - 1) * (k + n))
            value = gain + best[k - 1, n]
            if n > 0 and best[k, n - 1] > value:
                best[k, n] = best[k, n - 1]
                lowered[k, n] = lowered[k, n - 1]
            else:
                best[k, n] = value
                lowered[k, n] = n
    above = np.zeros(P, dtype=np.int64)
    n = N
    for k in range(P, 0, -1):
        n = above[k - 1] = lowered[k, n]
    return above
