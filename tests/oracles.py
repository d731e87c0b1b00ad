"""Slow and obviously right: every ranking is tried, every metric is written as its definition."""

import functools
import itertools
import math

import numpy as np
import torch

METRICS = ("ap", "ndcg", "auc", "rr", "precision@1", "precision@2", "precision@3", "precision@10")


def metric_of(order, name):
    """The metric of one ranking, given as the relevance (True or False) of its items from the top."""
    order = list(order)
    P, N = sum(order), len(order) - sum(order)
    ranks = [rank for rank, is_relevant in enumerate(order, start=1) if is_relevant]
    if name == "ap":
        return sum(sum(order[:rank]) / rank for rank in ranks) / P
    if name == "ndcg":
        ideal = sum(1 / math.log2(1 + rank) for rank in range(1, P + 1))
        return sum(1 / math.log2(1 + rank) for rank in ranks) / ideal
    if name == "auc":
        pairs = itertools.combinations(order, 2)
        return sum(above and not below for above, below in pairs) / (P * N)
    if name == "rr":
        return 1 / ranks[0]
    cutoff = int(name.removeprefix("precision@"))
    return sum(order[:cutoff]) / cutoff


def task_loss(order, name):
    """What a ranking loses against the best one."""
    return metric_of(sorted(order, reverse=True), name) - metric_of(order, name)


@functools.cache
def all_rankings(P, N):
    """Every permutation of P relevant items (0 … P-1) and N irrelevant ones (P …).

    Returns F's coefficients on the scores, (rankings, P + N), and a dict: metric -> task losses, (rankings,).
    """
    permutations = list(itertools.permutations(range(P + N)))
    return _tables(permutations, P, N)


@functools.cache
def all_interleavings(P, N):
    """The same where each side is in the order of its scores, 0 … P-1 and P …: far fewer, for larger problems."""
    rankings = []
    for places in itertools.combinations(range(P + N), P):
        relevant, irrelevant = iter(range(P)), iter(range(P, P + N))
        rankings.append([next(relevant) if place in places else next(irrelevant) for place in range(P + N)])
    return _tables(rankings, P, N)


def _tables(rankings, P, N):
    coefficients = np.zeros((len(rankings), P + N))
    place = np.argsort(np.array(rankings), axis=1)
    for k in range(P):
        for j in range(P, P + N):
            y = np.where(place[:, k] < place[:, j], 1.0, -1.0)
            coefficients[:, k] += y / (P * N)
            coefficients[:, j] -= y / (P * N)
    patterns = [tuple(item < P for item in ranking) for ranking in rankings]
    losses = {}
    for name in METRICS:
        of_pattern = {pattern: task_loss(pattern, name) for pattern in set(patterns)}
        losses[name] = np.array([of_pattern[pattern] for pattern in patterns])
    return coefficients, losses


def best_objective(s, t, name, epsilon, sign, tables=all_rankings):
    """The maximum of F + sign * epsilon * L over all rankings of relevant scores s and irrelevant scores t."""
    coefficients, losses = tables(len(s), len(t))
    return np.max(coefficients @ np.concatenate([s, t]) + sign * epsilon * losses[name])


def _lists(*values):
    """Numbers of Python: to take them out of a tensor one by one is slow."""
    return [each.tolist() if isinstance(each, torch.Tensor) else list(each) for each in values]


def order_of(above, relevance, scores):
    """One query's ranking as items from the top, from its opponents above; asserts that it is one legal interleaving.

    The k-th relevant item with n above stands at k + n, the j-th irrelevant one with m above at j + m: if the integers
    are legal, these are all the places from 1 on, each once.
    """
    above, relevance, scores = _lists(above, relevance, scores)
    places = {}
    for side in (True, False):
        items = [item for item in range(len(above)) if bool(relevance[item]) is side]
        items.sort(key=lambda item: (int(above[item]), -float(scores[item])))
        for count, item in enumerate(items, start=1):
            place = count + int(above[item])
            assert place not in places, f"two items at place {place}"
            places[place] = item
            before = items[count - 2] if count > 1 else None
            assert before is None or scores[before] >= scores[item], "a better item of the same side stands below"
    assert sorted(places) == list(range(1, len(above) + 1)), "the places have a gap"
    return [places[place] for place in sorted(places)]


def objective_of(above, scores, relevance, name, epsilon, sign):
    """F + sign * epsilon * L of a returned ranking, from the order that it spells."""
    above, scores, relevance = _lists(above, scores, relevance)
    order = order_of(above, relevance, scores)
    P, N = int(sum(relevance)), int(len(relevance) - sum(relevance))
    place = {item: rank for rank, item in enumerate(order)}
    score = 0.0
    for k, j in itertools.product(order, order):
        if relevance[k] and not relevance[j]:
            y = 1 if place[k] < place[j] else -1
            score += y * (float(scores[k]) - float(scores[j])) / (P * N)
    return score + sign * epsilon * task_loss([bool(relevance[item]) for item in order], name)


def pair_table(above, relevance):
    """(P, N) signs y_kj of one query's ranking, rows and columns in the order of the items: +1 where k is above j.

    j stands above k exactly if no more relevant items stand above j than above k and its equals.
    """
    relevant, irrelevant = above[relevance].tolist(), above[~relevance].tolist()
    y = torch.empty(len(relevant), len(irrelevant), dtype=torch.float64)
    for k, n in enumerate(relevant):
        relevant_above_k = sum(other < n for other in relevant)
        for j, m in enumerate(irrelevant):
            y[k, j] = -1.0 if m <= relevant_above_k else 1.0
    return y
