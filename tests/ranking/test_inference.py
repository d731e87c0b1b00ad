"""Every ranking against all permutations of its items, and every solver against every other."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import METRICS, all_interleavings, best_objective, objective_of, order_of

from rankshot import ranking
from rankshot.ranking import inference, solvers
from rankshot.ranking.metrics import get_metric
from rankshot.ranking.sorted_pool import other_side, predicted, split

EPSILONS = (0.03, 0.1, 1.0, 10.0)
SIZES = [(P, N) for P, N in itertools.product(range(1, 7), repeat=2) if P + N <= 7]
SOLVERS = (solvers.sweep, solvers.bisection, solvers.programme)


def problems(P, N, queries, levels, seed):
    """(Q, G + 2) scores with `levels` different values (None: continuous), relevance and valid, items in random order.

    Two items of each query are not valid and hold nan and inf.
    """
    random = torch.Generator().manual_seed(seed)
    G = P + N + 2
    scores = torch.rand(queries, G, generator=random, dtype=torch.float64) * 2 - 1
    if levels is not None:
        scores = (scores * levels).round() / levels
    relevance = (torch.arange(G) < P).repeat(queries, 1)
    valid = (torch.arange(G) < P + N).repeat(queries, 1)
    scores[:, -2], scores[:, -1] = torch.nan, torch.inf
    shuffle = torch.rand(queries, G, generator=random).argsort(-1)
    return scores.gather(1, shuffle), relevance.gather(1, shuffle), valid.gather(1, shuffle)


def solutions(scores, relevance, valid, metric, epsilon, sign):
    """The public answer, then that of every solver that may be asked: (Q, G) each."""
    yield ranking.loss_augmented_ranking(scores, relevance, valid, metric=metric, epsilon=epsilon, sign=sign)
    metric = get_metric(metric)
    sides = split(scores.where(valid, 0.0), relevance, ~relevance & valid)
    pull = inference.pull_of(sides, metric, epsilon, sign)
    decoupled = sign > 0 and metric.concave
    for solver in SOLVERS if decoupled else SOLVERS[-1:]:
        found = solver(sides, pull, metric.step)
        yield sides.to_items(found, other_side(found, scores.shape[1])).where(valid, 0)


@pytest.mark.parametrize("levels", [None, 2, 0.4], ids=["no ties", "ties", "all equal"])
@pytest.mark.parametrize(("P", "N"), SIZES)
def test_loss_augmented_is_the_best_of_all_permutations(P, N, levels):
    scores, relevance, valid = problems(P, N, queries=3, levels=levels, seed=P * 10 + N)
    for metric, epsilon, sign in itertools.product(METRICS, EPSILONS, (+1, -1)):
        found = list(solutions(scores, relevance, valid, metric, epsilon, sign))
        for query in range(len(scores)):
            keep = valid[query]
            s, t = scores[query][relevance[query]], scores[query][keep & ~relevance[query]]
            best = best_objective(s.numpy(), t.numpy(), metric, epsilon, sign)
            for above in {tuple(each[query].tolist()) for each in found}:  # most of them found the same
                above = torch.tensor(above)
                assert (above[~keep] == 0).all()
                reached = objective_of(above[keep], scores[query][keep], relevance[query][keep], metric, epsilon, sign)
                assert reached == pytest.approx(best, abs=1e-9), (metric, epsilon, sign)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_loss_augmented_is_the_best_of_all_interleavings(data):
    P = data.draw(st.integers(1, 6), "P")
    N = data.draw(st.integers(1, 12 - P), "N")
    # Both coarse numbers, where ties are many, and fine ones.
    number = st.one_of(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0]), st.floats(-3, 3, width=32))
    scores = torch.tensor([data.draw(st.lists(number, min_size=P + N, max_size=P + N), "scores")], dtype=torch.float64)
    relevance = (torch.arange(P + N) < P)[None]
    metric = data.draw(st.sampled_from(METRICS), "metric")
    epsilon = data.draw(st.floats(0.001, 100), "epsilon")
    sign = data.draw(st.sampled_from([+1, -1]), "sign")
    s, t = -np.sort(-scores[0, :P].numpy()), -np.sort(-scores[0, P:].numpy())
    best = best_objective(s, t, metric, epsilon, sign, tables=all_interleavings)
    for above in solutions(scores, relevance, torch.ones_like(relevance), metric, epsilon, sign):
        reached = objective_of(above[0], scores[0], relevance[0], metric, epsilon, sign)
        assert reached == pytest.approx(best, abs=1e-9 * max(1, epsilon))


LARGE = [(1, 1), (1, 300), (60, 1), (7, 120), (16, 17), (17, 16), (31, 32), (60, 60), (59, 61), (60, 300), (300, 60)]


@pytest.mark.parametrize("metric", ["ap", "ndcg", "auc", "rr"])
@pytest.mark.parametrize(("P", "N"), LARGE)
def test_solvers_agree(P, N, metric, device):
    metric = get_metric(metric)
    for spread, epsilon in itertools.product((0.02, 0.5), EPSILONS):
        random = torch.Generator().manual_seed(P + N)
        scores = torch.randn(6, P + N, generator=random, dtype=torch.float64) * spread
        scores[:, :P] += spread  # as after some training: rankings that are nearly right
        relevance = (torch.arange(P + N) < P).repeat(6, 1)
        relevance[:3, P // 2 :] = False  # queries of one call need not have the same counts
        scores, relevance = scores.to(device), relevance.to(device)
        sides = split(scores, relevance, ~relevance)
        pull = inference.pull_of(sides, metric, epsilon, +1)
        first, *others = (solver(sides, pull, metric.step) for solver in SOLVERS)
        for other in others:
            filled = torch.arange(first.shape[1], device=device) < sides.n_relevant
            assert torch.equal(first[filled], other[filled])
            for past_the_end in (first[~filled], other[~filled]):
                assert (past_the_end >= sides.n_irrelevant.expand_as(first)[~filled]).all()


def test_the_solver_does_not_depend_on_how_many_relevant_items_other_queries_have(device):
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(4, 200, generator=random, dtype=torch.float64).to(device)
    few = torch.arange(200, device=device) < torch.tensor([[1], [5], [20], [40]], device=device)
    many = few.clone()
    many[-1] = torch.arange(200, device=device) < 150
    for sign in (+1, -1):
        alone = ranking.loss_augmented_ranking(scores, few, sign=sign)
        beside = ranking.loss_augmented_ranking(scores, many, sign=sign)
        assert torch.equal(alone[:-1], beside[:-1])


def test_programme_in_parts_is_the_same(monkeypatch):
    scores, relevance, valid = problems(9, 30, queries=20, levels=None, seed=1)
    whole = ranking.loss_augmented_ranking(scores, relevance, valid, sign=-1)
    calls = []
    monkeypatch.setattr(inference, "PROGRAMME_VALUES", 3 * solvers.programme_values(9, 41))
    monkeypatch.setattr(inference.solvers, "programme", lambda *args, f=solvers.programme: calls.append(1) or f(*args))
    assert torch.equal(whole, ranking.loss_augmented_ranking(scores, relevance, valid, sign=-1))
    assert len(calls) == 7


@pytest.mark.parametrize("size", [1, 2, 7, 39, 40, 41])
def test_programme_in_stretches_is_the_same(size, monkeypatch):
    scores, relevance, valid = problems(40, 30, queries=5, levels=4, seed=1)
    relevance[0, 20:] = False
    whole = ranking.loss_augmented_ranking(scores, relevance, valid, sign=-1, epsilon=0.3)
    monkeypatch.setattr(solvers, "stretch", lambda places: size)
    assert torch.equal(whole, ranking.loss_augmented_ranking(scores, relevance, valid, sign=-1, epsilon=0.3))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_shift_of_all_scores_costs_no_digits(solver):
    """Scores of 8,192 and a bit: in float32 a bit is all that sums have left, unless they are taken of differences."""
    random = torch.Generator().manual_seed(0)
    differences = (torch.randn(4, 200, generator=random) * 64).round() / 64  # exact in float32 even so far from 0
    relevance = (torch.arange(200) < 20).repeat(4, 1)
    metric, found = get_metric("ap"), []
    for scores in (differences, differences + 8192.0):
        sides = split(scores, relevance, ~relevance)
        found.append(solver(sides, inference.pull_of(sides, metric, 0.013, +1), metric.step))
    assert torch.equal(*found)


@pytest.mark.parametrize(("P", "N"), SIZES)
@pytest.mark.parametrize("levels", [None, 2])
def test_predicted_is_the_order_of_the_scores_and_a_tie_is_a_mistake(P, N, levels):
    scores, relevance, valid = problems(P, N, queries=5, levels=levels, seed=P + N)
    above = ranking.predicted_ranking(scores, relevance, valid)
    for query, item in itertools.product(range(5), range(P + N + 2)):
        row, mine = scores[query], scores[query, item]
        relevant, irrelevant = relevance[query], valid[query] & ~relevance[query]
        if relevant[item]:
            assert above[query, item] == (row[irrelevant] >= mine).sum()
        elif irrelevant[item]:
            assert above[query, item] == (row[relevant] > mine).sum()
        else:
            assert above[query, item] == 0


def test_true_ranking_has_every_relevant_item_first():
    scores, relevance, valid = problems(3, 4, queries=5, levels=None, seed=0)
    above = ranking.true_ranking(scores, relevance, valid)
    assert (above[relevance] == 0).all()
    assert (above[valid & ~relevance] == 3).all()
    assert (above[~valid] == 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_of_equally_good_rankings_mistakes_win(solver, device):
    # For AUC a pair is worth t - s + epsilon / 2: with these scores exactly 0, so every ranking is equally good.
    scores = torch.tensor([[0.5, 0.5, 0.0, 0.0, 0.0]], dtype=torch.float64, device=device)
    relevance = torch.tensor([[True, True, False, False, False]], device=device)
    sides = split(scores, relevance, ~relevance)
    metric = get_metric("auc")
    found = solver(sides, inference.pull_of(sides, metric, epsilon=1.0, sign=+1), metric.step)
    assert found.tolist() == [[3, 3]]


def test_equal_scores_on_one_side_keep_the_order_in_which_the_items_came(device):
    scores = torch.zeros(1, 200, device=device)
    relevance = torch.arange(200, device=device)[None] % 3 == 0
    scores += relevance * 0.01  # within a side all are equal
    above = ranking.loss_augmented_ranking(scores, relevance, epsilon=0.5)
    for side in (relevance, ~relevance):
        assert (above[side].diff() >= 0).all()
    assert above[relevance].unique().numel() > 1  # or the test would see nothing
    assert torch.equal(above, ranking.loss_augmented_ranking(scores, relevance, epsilon=0.5))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**31), st.sampled_from(METRICS), st.sampled_from([+1, -1]), st.data())
def test_any_order_of_items_and_of_queries_gives_the_same(items, seed, metric, sign, data):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(5, items, generator=random, dtype=torch.float64)
    relevance = torch.rand(5, items, generator=random) < 0.4
    valid = torch.rand(5, items, generator=random) < 0.8
    of_items, of_queries = torch.randperm(items, generator=random), torch.randperm(5, generator=random)
    epsilon = data.draw(st.floats(0.01, 10))

    def infer(*masks):
        return ranking.loss_augmented_ranking(*masks, metric=metric, epsilon=epsilon, sign=sign)

    there = infer(scores, relevance, valid)
    shuffled = infer(*(each[of_queries][:, of_items] for each in (scores, relevance, valid)))
    assert torch.equal(there[of_queries][:, of_items], shuffled)
    shifted = infer((scores + 0.5).where(valid, torch.nan), relevance, valid)
    assert torch.equal(there, shifted)
    for query in range(5):
        keep = valid[query]
        if keep.any():
            order_of(there[query][keep], relevance[query][keep], scores[query][keep])


def test_float32_reaches_nearly_the_same_objective():
    scores, relevance, valid = problems(20, 100, queries=30, levels=None, seed=5)
    for sign in (+1, -1):
        single = ranking.loss_augmented_ranking(scores.float(), relevance, valid, sign=sign)
        double = ranking.loss_augmented_ranking(scores, relevance, valid, sign=sign)
        for query in range(30):
            keep = valid[query]
            values = [
                objective_of(above[query][keep], scores[query][keep], relevance[query][keep], "ap", 1.0, sign)
                for above in (single, double)
            ]
            assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_half_precisions_are_ranked_in_float32(device):
    scores, relevance, valid = problems(3, 20, queries=4, levels=None, seed=2)
    for dtype in (torch.bfloat16, torch.float16):
        low = scores.to(device, dtype)
        relevance, valid = relevance.to(device), valid.to(device)
        assert torch.equal(
            ranking.loss_augmented_ranking(low, relevance, valid),
            ranking.loss_augmented_ranking(low.float(), relevance, valid),
        )


def test_the_augmented_ranking_tends_to_the_predicted_one_as_epsilon_falls():
    scores, relevance, valid = problems(5, 30, queries=10, levels=None, seed=3)
    for sign in (+1, -1):
        tiny = ranking.loss_augmented_ranking(scores, relevance, valid, epsilon=1e-9, sign=sign)
        assert torch.equal(tiny, ranking.predicted_ranking(scores, relevance, valid))
    huge = ranking.loss_augmented_ranking(scores, relevance, valid, epsilon=1e6)
    assert (huge[relevance] == 30).all()
    best = ranking.loss_augmented_ranking(scores, relevance, valid, epsilon=1e6, sign=-1)
    assert torch.equal(best, ranking.true_ranking(scores, relevance, valid))


class TestSupplementaryA:
    """Independence of the query rankings: whatever two queries of a class want, some placing of the points gives it."""

    # y^i_kj and y^k_ij, then the places of i, k and j on a line, as in the paper's table; nearer is more similar.
    CASES = (
        (+1, +1, {"i": 1.0, "k": 2.0, "j": 8.0}),
        (+1, -1, {"i": 1.0, "k": 7.0, "j": 8.0}),
        (-1, +1, {"k": 1.0, "i": 7.0, "j": 8.0}),
        (-1, -1, {"i": 1.0, "j": 7.0, "k": 8.0}),
    )

    @pytest.mark.parametrize(("y_i", "y_k", "places"), CASES)
    def test_placing(self, y_i, y_k, places):
        points = torch.tensor([places["i"], places["k"], places["j"]], dtype=torch.float64)
        scores = -(points[:, None] - points).abs()
        relevance, valid = ranking.relevance_of(torch.tensor([1, 1, 2]))
        above = ranking.predicted_ranking(scores, relevance, valid)
        assert above[0, 1] == (0 if y_i > 0 else 1)
        assert above[1, 0] == (0 if y_k > 0 else 1)
        # j alone of its class ranks nothing that counts: no y^j is ever asked for.
        assert not relevance[2].any()

    def test_ranking_one_query_does_not_change_another(self):
        random = torch.Generator().manual_seed(0)
        scores = torch.randn(12, 12, generator=random, dtype=torch.float64)
        relevance, valid = ranking.relevance_of(torch.arange(12) % 3)
        together = ranking.loss_augmented_ranking(scores, relevance, valid)
        alone = [ranking.loss_augmented_ranking(*(x[q : q + 1] for x in (scores, relevance, valid))) for q in range(12)]
        assert torch.equal(together, torch.cat(alone))


def test_predicted_on_sides(device):
    scores = torch.tensor([[0.3, 0.9, 0.3, -1.0]], device=device)
    relevance = torch.tensor([[True, False, False, True]], device=device)
    sides = split(scores, relevance, ~relevance)
    assert predicted(sides).tolist() == [[2, 2]]
