"""RankingLoss against the paper's formula written out, and everything that a training loop may do to it."""

import itertools
import math
import pickle
import warnings
from statistics import NormalDist

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import METRICS, order_of, pair_table, task_loss

from rankshot import ranking
from rankshot.losses import RankingLoss
from rankshot.losses.ranking_loss import BEST

CASES = [("ssvm", +1), ("dlm", +1), ("dlm", -1)]


def batch(size=24, classes=5, dimensions=6, seed=0, dtype=torch.float64):
    """Embeddings of uneven classes in random order, one of them with a single image."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (size,), generator=random)
    labels[size // 2] = classes + 7  # alone
    embeddings = torch.randn(size, dimensions, generator=random, dtype=dtype)
    return embeddings, labels


def paper(embeddings, labels, refs=None, ref_labels=None, *, framework, sign, alpha, metric="ap", epsilon=1.0):
    """The paper's equations, one query at a time: pair table y, P = items ranked, mean over the ranked queries."""
    losses = []
    for i in range(len(embeddings)):
        others = torch.arange(len(embeddings)) != i
        items, item_labels = (embeddings[others], labels[others]) if refs is None else (refs, ref_labels)
        relevant = item_labels == labels[i]
        P, N = int(relevant.sum()), int((~relevant).sum())
        if P == 0 or N == 0:
            continue
        phi = (items @ embeddings[i]) / (items.norm(dim=1) * embeddings[i].norm())
        fixed = phi.detach()[None], relevant[None]
        augmented = ranking.loss_augmented_ranking(*fixed, metric=metric, epsilon=epsilon, sign=sign)[0]
        reference = (ranking.true_ranking if framework == "ssvm" else ranking.predicted_ranking)(*fixed)[0]

        def F(above, phi=phi, relevant=relevant, P=P, N=N):
            y = pair_table(above, relevant)
            return (y * (phi[relevant][:, None] - phi[~relevant][None, :])).sum() / (P * N)

        value = alpha * F(augmented) - F(reference)
        if framework == "dlm":
            value = sign / epsilon * value
        else:
            order = order_of(augmented, relevant, fixed[0][0])
            value = value + epsilon * task_loss([bool(relevant[item]) for item in order], metric)
        losses.append(value)
    return torch.stack(losses).mean()


def called(function, embeddings, labels, *references):
    """A loss has another argument, a miner's, before its references."""
    between = [None] if isinstance(function, torch.nn.Module) and references else []
    return function(embeddings, labels, *between, *references)


def value_and_gradients(function, *inputs):
    leaves = [each.clone().requires_grad_() if each.is_floating_point() else each for each in inputs]
    value = called(function, *leaves)
    value.backward()
    return value.detach(), [leaf.grad for leaf in leaves if leaf.is_floating_point()]


@pytest.mark.parametrize("with_references", [False, True], ids=["self", "references"])
@pytest.mark.parametrize("alpha", [1.0, 10.0])
@pytest.mark.parametrize(("framework", "sign"), CASES)
def test_gradient_is_autograd_through_the_paper(framework, sign, alpha, with_references):
    inputs = batch(size=16, seed=1)
    if with_references:
        inputs = (*inputs, *batch(size=12, seed=2))
    for metric, epsilon in itertools.product(METRICS, (0.2, 1.0)):
        options = {"metric": metric, "framework": framework, "epsilon": epsilon, "alpha": alpha, "sign": sign}
        value, gradients = value_and_gradients(RankingLoss.paper(**options), *inputs)
        expected, expected_gradients = value_and_gradients(lambda *x, options=options: paper(*x, **options), *inputs)
        torch.testing.assert_close(value, expected, atol=1e-9, rtol=0)
        for mine, theirs in zip(gradients, expected_gradients, strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-9, rtol=0)


@pytest.mark.parametrize("classes", [9, 2], ids=["few relevant", "many relevant"])
@pytest.mark.parametrize(("framework", "sign"), CASES)
def test_chunks_change_nothing(framework, sign, classes, device):
    embeddings, labels = (each.to(device) for each in batch(size=60, classes=classes, seed=3))
    refs = [each.to(device) for each in batch(size=28, classes=classes, seed=4)]
    for inputs, reduction in itertools.product([(embeddings, labels), (embeddings, labels, *refs)], ["mean", "sum"]):
        options = {"framework": framework, "sign": sign, "reduction": reduction}
        whole = value_and_gradients(RankingLoss.paper(**options), *inputs)
        for budget in (1, 2 * 10**5, 8 * 10**5):  # one by one, in a few chunks, in two
            value, gradients = value_and_gradients(RankingLoss.paper(**options, memory_budget=budget), *inputs)
            torch.testing.assert_close(value, whole[0], atol=1e-12, rtol=0)
            for mine, theirs in zip(gradients, whole[1], strict=True):
                torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_gradient_that_comes_in_is_multiplied_by(reduction):
    inputs = (*batch(seed=5), *batch(size=17, seed=6))
    loss = RankingLoss(reduction=reduction)
    _, plain = value_and_gradients(lambda *x: called(loss, *x).sum(), *inputs)
    _, scaled = value_and_gradients(lambda *x: 65536 * called(loss, *x).sum(), *inputs)
    for one, other in zip(plain, scaled, strict=True):
        assert one.abs().sum() > 0
        torch.testing.assert_close(65536 * one, other)


def test_labels_may_be_filled_anew_before_backward():
    embeddings, labels = batch(seed=5)
    embeddings.requires_grad_()
    for reduction in ("mean", "none"):
        value = RankingLoss(reduction=reduction)(embeddings, labels).sum()
        mine = labels.clone()
        again = RankingLoss(reduction=reduction)(embeddings, mine).sum()
        mine.zero_()
        expected, found = (torch.autograd.grad(each, embeddings)[0] for each in (value, again))
        assert torch.equal(expected, found)


def test_reductions_agree(device):
    embeddings, labels = (each.to(device) for each in batch(seed=5))
    weigh = torch.linspace(0.1, 2, len(labels), dtype=torch.float64, device=device)
    each = RankingLoss(reduction="none")(embeddings, labels)
    relevance, valid = ranking.relevance_of(labels)
    rankable = relevance.any(-1) & (valid & ~relevance).any(-1)
    assert each.shape == labels.shape
    assert (each[~rankable] == 0).all()
    assert not rankable.all()
    assert (each[rankable] != 0).all()
    mean, by_mean = value_and_gradients(RankingLoss(), embeddings, labels)
    total, by_sum = value_and_gradients(RankingLoss(reduction="sum"), embeddings, labels)
    torch.testing.assert_close(mean, each[rankable].mean())
    torch.testing.assert_close(total, each.sum())
    torch.testing.assert_close(by_sum[0], by_mean[0] * rankable.sum())

    # Every query's own gradient: the weighted sum through "none" is the weighted sum of the gradients one by one.
    _, weighted = value_and_gradients(lambda e, y: (RankingLoss(reduction="none")(e, y) * weigh).sum(), embeddings, labels)
    one_by_one = torch.zeros_like(embeddings)
    for query in range(len(labels)):
        one = value_and_gradients(lambda e, y, q=query: RankingLoss(reduction="none")(e, y)[q], embeddings, labels)
        one_by_one += weigh[query] * one[1][0]
    torch.testing.assert_close(weighted[0], one_by_one, atol=1e-12, rtol=0)


def test_queries_against_references_that_are_themselves_count_themselves():
    """References are other items, even where they hold the same numbers: nothing is left out by guessing."""
    embeddings, labels = batch(seed=6)
    selfless = RankingLoss()(embeddings, labels)
    with_self = RankingLoss()(embeddings, labels, None, embeddings.clone(), labels)
    assert selfless != with_self


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(METRICS), st.sampled_from(CASES))
def test_any_order_of_the_batch_gives_the_same(seed, metric, case):
    framework, sign = case
    embeddings, labels = batch(seed=seed)
    loss = RankingLoss(metric=metric, framework=framework, sign=sign)
    value, (gradient,) = value_and_gradients(loss, embeddings, labels)
    shuffle = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    shuffled, (shuffled_gradient,) = value_and_gradients(loss, embeddings[shuffle], labels[shuffle])
    torch.testing.assert_close(value, shuffled)
    torch.testing.assert_close(gradient[shuffle], shuffled_gradient)
    scaled, (by_scaled,) = value_and_gradients(loss, embeddings * 7.0, labels)
    torch.testing.assert_close(value, scaled)  # cosine: length does not matter …
    torch.testing.assert_close(gradient, by_scaled * 7.0)
    torch.testing.assert_close((gradient * embeddings).sum(-1), torch.zeros(len(labels), dtype=torch.float64))  # … at all


def test_training_raises_average_precision(device):
    random = torch.Generator().manual_seed(0)
    centres = torch.randn(6, 10, generator=random)
    labels = torch.arange(6).repeat(10).to(device)
    points = (centres.to(device)[labels] + 1.5 * torch.randn(60, 10, generator=random).to(device)).requires_grad_()
    relevance, valid = ranking.relevance_of(labels)

    def mean_ap():
        unit = torch.nn.functional.normalize(points.detach(), dim=-1)
        return ranking.average_precision(unit @ unit.T, relevance, valid).mean().item()

    start = mean_ap()
    for options in ({}, {"framework": "ssvm"}, {"sign": -1}, {"sign": 0}, {"metric": "ndcg"}):
        loss = RankingLoss(**options)
        with torch.no_grad():
            points.copy_(centres.to(device)[labels] + 1.5 * torch.randn(60, 10, generator=random).to(device))
        optimiser = torch.optim.Adam([points], lr=0.05)
        for _ in range(150):
            optimiser.zero_grad()
            loss(points, labels).backward()
            optimiser.step()
        assert mean_ap() > max(0.9, start + 0.2), loss


@pytest.mark.parametrize("zeros", [1, 5, 24])
def test_zero_embeddings_are_safe(zeros, device):
    embeddings, labels = (each.to(device) for each in batch(seed=7))
    embeddings[:zeros] = 0.0
    for framework, sign in CASES:
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            value, (gradient,) = value_and_gradients(
                RankingLoss(framework=framework, sign=sign), embeddings.to(dtype), labels
            )
            assert value.isfinite()
            assert gradient.isfinite().all()
            assert (gradient[:zeros] == 0).all()
            if zeros < 24:
                assert (gradient[zeros:] != 0).any()


@pytest.mark.parametrize("size", [1e-38, 1e-25, 1e-10, 1e10, 1e37])
def test_very_short_and_very_long_embeddings(size):
    embeddings, labels = batch(seed=8, dtype=torch.float32)
    expected, (gradient,) = value_and_gradients(RankingLoss(), embeddings, labels)
    value, (scaled,) = value_and_gradients(RankingLoss(), embeddings * size, labels)
    assert value.isfinite()
    assert scaled.isfinite().all()
    if size > 1e-18:
        torch.testing.assert_close(value, expected)
    if 1e-18 < size < 1e30:
        torch.testing.assert_close(scaled * size, gradient, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_an_embedding_as_short_as_its_precision_allows(dtype, device):
    embeddings, labels = (each.to(device) for each in batch(seed=7))
    embeddings = embeddings.to(dtype)
    for smallest in (torch.finfo(dtype).smallest_normal, torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps):
        embeddings[3] = 0
        embeddings[3, 1] = smallest
        value, (gradient,) = value_and_gradients(RankingLoss(), embeddings, labels)
        assert value.isfinite()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("settings", [{"epsilon": 1e-12}, {"epsilon": 1e12}, {"alpha": 1e12}, {"alpha": -1e12}], ids=str)
@pytest.mark.parametrize("metric", METRICS)
def test_the_most_extreme_settings_stay_finite(settings, metric):
    embeddings, labels = batch(seed=7, dtype=torch.float32)
    for sign in (+1, -1):
        value, (gradient,) = value_and_gradients(RankingLoss(**settings, metric=metric, sign=sign), embeddings, labels)
        assert value.isfinite()
        assert gradient.isfinite().all()


def test_whatever_the_default_precision_and_device_are():
    embeddings, labels = batch(size=80, seed=7, dtype=torch.float32)
    expected = value_and_gradients(RankingLoss(), embeddings, labels)
    relevance, valid = ranking.relevance_of(labels)
    scores = embeddings @ embeddings.T
    above = ranking.loss_augmented_ranking(scores, relevance, valid)
    try:
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        for framework, sign in CASES:
            assert RankingLoss(framework=framework, sign=sign)(embeddings, labels).dtype == torch.float32
        found = value_and_gradients(RankingLoss(), embeddings, labels)
        assert torch.equal(above, ranking.loss_augmented_ranking(scores, relevance, valid))
        assert ranking.ssvm(scores, relevance, valid).loss.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_precisions(dtype, device):
    embeddings, labels = batch(seed=9)
    embeddings, labels = embeddings.to(device, dtype), labels.to(device)
    value, (gradient,) = value_and_gradients(RankingLoss(), embeddings, labels)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert gradient.dtype == dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    expected, (wide_gradient,) = value_and_gradients(RankingLoss(), embeddings.to(wide), labels)
    assert torch.equal(value, expected)  # inference happens in float32, whatever came in
    torch.testing.assert_close(gradient, wide_gradient.to(dtype))


def test_references_of_another_precision():
    embeddings, labels = batch(seed=9)
    refs, ref_labels = batch(seed=10)
    value, gradients = value_and_gradients(RankingLoss(), embeddings.bfloat16(), labels, refs, ref_labels)
    assert value.dtype == torch.float64
    assert [each.dtype for each in gradients] == [torch.bfloat16, torch.float64]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(dtype, device):
    embeddings, labels = batch(seed=11, dtype=torch.float32)
    embeddings, labels = embeddings.to(device), labels.to(device)
    layer = torch.nn.Linear(6, 4, bias=False).to(device)
    with torch.autocast(device, dtype=dtype):
        low = layer(embeddings)
        loss = RankingLoss()(low, labels)
        each = RankingLoss(reduction="none")(low, labels)
    assert low.dtype == dtype
    assert loss.dtype == torch.float32
    loss.backward(retain_graph=True)
    assert layer.weight.grad.isfinite().all()
    assert torch.equal(loss, RankingLoss()(low.detach().float(), labels))
    with torch.autocast(device, dtype=dtype):  # a backward pass within it
        (by_each,) = torch.autograd.grad(each.sum(), low)
    assert by_each.dtype == dtype
    _, (expected,) = value_and_gradients(RankingLoss(reduction="sum"), low.detach().float(), labels)
    torch.testing.assert_close(by_each, expected.to(dtype))


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_torch_compile_around_it(backend, device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).to(device)
    loss = RankingLoss()

    def step(embeddings, labels):
        return 2 * loss(model(embeddings), labels)

    def gradient_of(function, seed):
        embeddings, labels = batch(seed=seed, dtype=torch.float32, size=20 + seed)  # the size changes too
        model.zero_grad()
        value = function(embeddings.to(device), labels.to(device))
        value.backward()
        return value, model[0].weight.grad.clone()

    torch.compiler.reset()
    compiled_step, compiled_loss = torch.compile(step, backend=backend), torch.compile(loss, backend=backend)
    for seed in (12, 13):
        expected = gradient_of(step, seed)
        torch.testing.assert_close(gradient_of(compiled_step, seed), expected)
        torch.testing.assert_close(gradient_of(lambda e, y: 2 * compiled_loss(model(e), y), seed), expected)


def test_gradient_goes_only_where_it_is_asked_for():
    embeddings, labels = batch(seed=14)
    refs, ref_labels = batch(seed=15)
    for reduction in ("mean", "none"):
        loss = RankingLoss(reduction=reduction)
        moving = refs.clone().requires_grad_()
        loss(embeddings, labels, None, moving, ref_labels).sum().backward()
        queries = embeddings.clone().requires_grad_()
        loss(queries, labels, None, refs, ref_labels).sum().backward()
        assert moving.grad.abs().sum() > 0
        assert queries.grad.abs().sum() > 0
        with torch.no_grad():
            assert not loss(queries, labels).requires_grad


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_second_derivatives_are_refused(reduction):
    embeddings, labels = batch(seed=16)
    embeddings.requires_grad_()
    value = RankingLoss(reduction=reduction)(embeddings, labels).sum()
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.autograd.grad(value, embeddings, create_graph=True)


class TestBadInput:
    def test_empty_batch(self):
        for shape in ((0, 4), (4, 0), (4,), (2, 3, 4)):
            with pytest.raises(ValueError, match="at least one of each") as error:
                RankingLoss()(torch.zeros(shape), torch.zeros(shape[:1], dtype=torch.int64))
            assert str(shape) in str(error.value)

    def test_labels(self):
        embeddings, labels = batch()
        with pytest.raises(ValueError, match="labels must be one for each of 24 embeddings, got 23"):
            RankingLoss()(embeddings, labels[1:])
        with pytest.raises(ValueError, match=r"labels must have one dimension, got shape \(24, 1\)"):
            RankingLoss()(embeddings, labels[:, None])
        with pytest.raises(ValueError, match="ref_labels must be one for each of 24 ref_emb, got 3"):
            RankingLoss()(embeddings, labels, None, embeddings, labels[:3])
        with pytest.raises(TypeError, match=r"labels must be integers, got torch.float32"):
            RankingLoss()(embeddings, labels.float())
        with pytest.raises(TypeError, match="labels must be a tensor, got list"):
            RankingLoss()(embeddings, labels.tolist())
        with pytest.raises(TypeError, match="embeddings must be a tensor, got ndarray"):
            RankingLoss()(embeddings.numpy(), labels)

    def test_references(self):
        embeddings, labels = batch()
        with pytest.raises(ValueError, match="ref_labels is missing"):
            RankingLoss()(embeddings, labels, None, embeddings)
        with pytest.raises(ValueError, match="ref_emb is missing"):
            RankingLoss()(embeddings, labels, None, None, labels)
        with pytest.raises(ValueError, match="embeddings have 6 dimensions, but ref_emb has 5"):
            RankingLoss()(embeddings, labels, None, embeddings[:, :5], labels)

    def test_embeddings(self, device):
        embeddings, labels = (each.to(device) for each in batch())
        with pytest.raises(TypeError, match=r"embeddings must be floating point, got torch.int64"):
            RankingLoss()(embeddings.long(), labels)
        for bad in (torch.nan, torch.inf, -torch.inf):
            wrong = embeddings.clone()
            wrong[3, 2] = bad
            with pytest.raises(ValueError, match=f"^embeddings must be finite, got {bad} in row 3, column 2"):
                RankingLoss()(wrong, labels)
            with pytest.raises(ValueError, match=f"^ref_emb must be finite, got {bad} in row 3, column 2"):
                RankingLoss()(embeddings, labels, None, wrong, labels)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"epsilon": 0}, "epsilon must be a number from 1e-12 to 1e[+]12, got 0"),
            ({"epsilon": -2.5}, "epsilon must be a number from 1e-12 to 1e[+]12, got -2.5"),
            ({"framework": "ssvm", "sign": -1}, "ssvm has no negative update, got sign -1"),
            ({"sign": 2}, "sign must be .* or 0 .the mean of both., got 2"),
            ({"framework": "ssvm", "sign": 0}, "ssvm has no negative update, got sign 0"),
            ({"metric": "map"}, "unknown metric 'map'"),
            ({"framework": "svm"}, "unknown framework 'svm'"),
            ({"reduction": "max"}, "unknown reduction 'max'"),
            ({"alpha": float("nan")}, "alpha must be a number from -1e[+]12 to 1e[+]12, got nan"),
            ({"alpha": 1e38}, "alpha must be a number from -1e[+]12 to 1e[+]12, got 1e[+]38"),
            ({"alpha": "10"}, "alpha must be a number from -1e[+]12 to 1e[+]12, got '10'"),
            ({"epsilon": "1"}, "epsilon must be a number from 1e-12 to 1e[+]12, got '1'"),
            ({"smoothing": "0.1"}, "smoothing must be a number from 0 to 100, got '0.1'"),
            ({"epsilon": 1e-40}, "epsilon must be a number from 1e-12 to 1e[+]12, got 1e-40"),
            ({"framework": ["dlm"]}, r"unknown framework \['dlm'\]"),
            ({"memory_budget": 0}, "memory_budget must be a whole number from 1 to 1,125,899,906,842,624, got 0"),
            ({"memory_budget": 1e9}, "memory_budget must be a whole number from 1 to .*, got 1000000000.0"),
            ({"memory_budget": "1GB"}, "memory_budget must be a whole number from 1 to 1,125,899,906,842,624, got '1GB'"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            RankingLoss(**options)

    @pytest.mark.parametrize("labels", [[1, 1, 1, 1], [1, 2, 3, 4], [1]], ids=["one class", "all alone", "one image"])
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_a_batch_that_cannot_be_ranked_is_zero_and_warns_once(self, labels, reduction, device):
        embeddings = torch.randn(len(labels), 3, device=device, requires_grad=True)
        loss = RankingLoss(reduction=reduction)
        for framework_loss in (loss, RankingLoss(framework="ssvm", reduction=reduction)):
            with pytest.warns(UserWarning, match=f"no query of this batch of {len(labels)} ") as warned:
                value = framework_loss(embeddings, torch.tensor(labels, device=device))
            assert warned[0].filename == __file__  # it points at the user's line
            assert (value == 0).all()
            value.sum().backward()
            assert (embeddings.grad == 0).all()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                framework_loss(embeddings, torch.tensor(labels, device=device)).sum().backward()


def test_labels_may_be_any_integers_and_on_any_device(device):
    embeddings, labels = batch(seed=17)
    expected = RankingLoss()(embeddings, labels)
    embeddings = embeddings.to(device)
    strided = torch.stack([labels, labels], dim=1)[:, 0]
    for same in (labels, strided, labels.to(torch.int32), labels.to(torch.uint8), labels * 10**12 - 5):
        torch.testing.assert_close(RankingLoss()(embeddings, same).cpu(), expected)
    two = RankingLoss()(embeddings, labels > 2)  # bool: two classes
    torch.testing.assert_close(two, RankingLoss()(embeddings, (labels > 2).long()))


def test_it_says_what_it_is_and_survives_copying():
    loss = RankingLoss.paper(metric="precision@5", framework="dlm", epsilon=0.5, sign=-1, reduction="sum")
    expected = "RankingLoss(metric='precision@5', framework='dlm', epsilon=0.5, alpha=1, sign=-1, reduction='sum')"
    assert repr(loss) == expected
    assert list(loss.parameters()) == []
    embeddings, labels = batch(seed=18)
    default = RankingLoss()
    copied = pickle.loads(pickle.dumps(default))
    assert torch.equal(copied(embeddings, labels), default(embeddings, labels))


def test_the_best_that_is_known_and_the_paper_s():
    """What nobody says is the best for the framework; `paper` is the paper's."""
    embeddings, labels = batch(seed=18)
    for framework, best in BEST.items():
        found = value_and_gradients(RankingLoss(framework=framework), embeddings, labels)
        torch.testing.assert_close(
            found, value_and_gradients(RankingLoss(framework=framework, **best), embeddings, labels), rtol=0, atol=0
        )
        explicit = RankingLoss(framework=framework, epsilon=1.0, alpha=10.0, smoothing=0.0, coarse_weight=0.0)
        theirs = value_and_gradients(RankingLoss.paper(framework), embeddings, labels)
        torch.testing.assert_close(theirs, value_and_gradients(explicit, embeddings, labels), rtol=0, atol=0)
        assert not torch.allclose(found[0], theirs[0])
    assert RankingLoss.paper(sign=-1).settings.alpha == 1
    assert RankingLoss.paper(sign=-1, alpha=2.0).settings.alpha == 2
    with pytest.raises(ValueError, match="ssvm has no negative update"):
        RankingLoss.paper("ssvm", sign=-1)


@pytest.mark.gpu
def test_it_can_be_recorded_in_a_cuda_graph():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    for options in ({}, {"framework": "ssvm"}, {"sign": -1}, {"metric": "ndcg"}):
        embeddings, labels = (each.cuda() for each in batch(size=64, seed=19, dtype=torch.float32))
        leaf, loss = embeddings.clone().requires_grad_(), RankingLoss(**options)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            loss(leaf, labels).backward()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        leaf.grad = None
        with torch.cuda.graph(graph):
            value = loss(leaf, labels)
            value.backward()
        for seed in (20, 21):
            fresh, fresh_labels = (each.cuda() for each in batch(size=64, seed=seed, dtype=torch.float32))
            with torch.no_grad():
                leaf.copy_(fresh)
            labels.copy_(fresh_labels)
            leaf.grad.zero_()
            graph.replay()
            expected, (gradient,) = value_and_gradients(loss, fresh, fresh_labels)
            torch.testing.assert_close(value, expected)
            torch.testing.assert_close(leaf.grad, gradient)
        with torch.no_grad():
            leaf[3, 2] = torch.nan
        graph.replay()
        assert value.isnan()  # nothing is checked within a graph, but nothing is hidden either


class TestSmoothing:
    def test_it_is_the_mean_over_shifts_of_the_relevant_scores(self, device):
        random = torch.Generator().manual_seed(0)
        unit = torch.nn.functional.normalize(torch.randn(30, 6, generator=random, dtype=torch.float64), dim=-1).to(device)
        labels = torch.randint(5, (30,), generator=random).to(device)
        relevance, valid = ranking.relevance_of(labels)
        scores = unit @ unit.T
        shifts = [0.1 * NormalDist().inv_cdf((place + 0.5) / 3) for place in range(3)]
        found = [ranking.dlm(scores + shift * relevance, relevance, valid, epsilon=0.05, alpha=1.0) for shift in shifts]
        loss = RankingLoss.paper(epsilon=0.05, alpha=1.0, smoothing=0.1, smoothing_samples=3, reduction="none")
        own = unit.clone().requires_grad_()
        value = loss(own, labels)
        torch.testing.assert_close(value.detach(), sum(each.loss for each in found) / 3)
        value.sum().backward()
        weights = sum(each.weights for each in found) / 3
        by_unit = weights @ unit + weights.T @ unit
        expected = by_unit - (by_unit * unit).sum(-1, keepdim=True) * unit  # what normalising leaves of it
        torch.testing.assert_close(own.grad, expected)

    @pytest.mark.parametrize("reduction", ["mean", "sum"])
    def test_chunks_and_reductions_agree(self, reduction, device):
        embeddings = torch.randn(40, 6, dtype=torch.float64, device=device)
        labels = torch.arange(40, device=device) % 6
        options = {"alpha": 1.0, "epsilon": 0.1, "smoothing": 0.05}
        gradients = []
        for how in ({"reduction": reduction}, {"reduction": reduction, "memory_budget": 50_000}, {"reduction": "none"}):
            own = embeddings.clone().requires_grad_()
            value = RankingLoss(**options, **how)(own, labels)
            (value.mean() if reduction == "mean" else value.sum()).backward()
            gradients.append(own.grad)
        torch.testing.assert_close(gradients[0], gradients[1])
        torch.testing.assert_close(gradients[0], gradients[2])

    def test_pairs_that_are_just_wrong_are_pulled_too(self):
        """Without smoothing the positive update with alpha 1 looks only at pairs that are right by little."""
        scores = torch.tensor([[0.50, 0.51]], dtype=torch.float64)
        relevance = torch.tensor([[True, False]])
        assert not ranking.dlm(scores, relevance, epsilon=0.01, alpha=1.0).weights.any()
        points = torch.tensor([[1.0, 0.0], [0.9, 0.43589], [0.905, 0.42541]], dtype=torch.float64, requires_grad=True)
        labels = torch.tensor([0, 0, 1])
        RankingLoss.paper(epsilon=0.01, alpha=1.0)(points[:1], labels[:1], None, points[1:], labels[1:]).backward()
        assert not points.grad.any()
        RankingLoss.paper(epsilon=0.01, alpha=1.0, smoothing=0.02)(
            points[:1], labels[:1], None, points[1:], labels[1:]
        ).backward()
        assert points.grad.any()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"smoothing": -0.1}, "smoothing must be a number from 0 to 100, got -0.1"),
            ({"smoothing": math.inf}, "smoothing must be a number from 0 to 100, got inf"),
            ({"smoothing": 0.1, "smoothing_samples": 1}, "_samples must be a whole number from 2 to 1,000, got 1"),
            ({"smoothing": 1e308}, "smoothing must be a number from 0 to 100, got 1e[+]308"),
            (
                {"smoothing": 0.1, "smoothing_samples": 2**63 - 1},
                "_samples must be a whole number from .*, got 9223372036854775807",
            ),
            (
                {"smoothing": 0.1, "smoothing_samples": 2.0},
                "_samples must be a whole number from 2 to 1,000, got 2.0",
            ),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            RankingLoss(**options)

    def test_it_says_so(self):
        assert "smoothing=0.01, smoothing_samples=4" in repr(RankingLoss(smoothing=0.01))
        assert "smoothing" not in repr(RankingLoss.paper())


@pytest.mark.parametrize("framework", ["dlm", "ssvm"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_two_objectives_at_once_are_the_sum_of_two(framework, reduction, dtype, device):
    random = torch.Generator().manual_seed(0)
    embeddings = torch.randn(30, 5, generator=random, dtype=dtype).to(device)
    labels = torch.randint(4, (30,), generator=random).to(device)
    near, far, both = (
        RankingLoss.paper(framework, metric="ndcg", epsilon=epsilon, alpha=alpha, reduction=reduction, **more)
        for epsilon, alpha, more in (
            (0.01, 1.0, {"smoothing": 0.02}),
            (1.0, 5.0, {}),
            (0.01, 1.0, {"smoothing": 0.02, "coarse_weight": 0.3, "coarse_alpha": 5.0}),
        )
    )
    for batch in (slice(30),), (slice(20), slice(20, 30)):  # the batch itself, and others to rank
        found = []
        for loss in (both, lambda *batch: called(near, *batch) + 0.3 * called(far, *batch)):
            own = embeddings.clone().requires_grad_()
            value = called(loss, *(part for some in batch for part in (own[some], labels[some])))
            value.sum().backward()
            found.append((value.detach(), own.grad))
        close = {"rtol": 1e-3, "atol": 1e-4} if dtype == torch.float32 else {}
        torch.testing.assert_close(*found, **close)


def test_with_a_coarse_one_every_pair_takes_part(device):
    """Far-apart pairs have no gradient with a small epsilon, and have one here."""
    points = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], device=device, requires_grad=True)
    labels = torch.tensor([0, 0, 1], device=device)
    RankingLoss.paper(epsilon=0.001, alpha=1.0)(points, labels).backward()
    assert not points.grad.any()
    RankingLoss.paper(epsilon=0.001, alpha=1.0, coarse_weight=0.3)(points, labels).backward()
    assert points.grad.any()


@pytest.mark.parametrize("weight", [-1.0, math.inf, math.nan, True])
def test_bad_weights_of_a_coarse_one(weight):
    with pytest.raises(ValueError, match=r"coarse_weight must be a number from 0 to 1e[+]12, got"):
        RankingLoss(coarse_weight=weight)


def test_the_negative_update_has_no_coarse_scale_by_itself():
    def signs(loss):
        return {ranking.chosen.sign for ranking in loss.rankings}

    assert signs(RankingLoss(sign=-1)) == {-1}
    assert signs(RankingLoss(sign=-1, coarse_weight=0.1)) == {-1, 1}
    assert signs(RankingLoss()) == {1}
    assert RankingLoss(sign=0).coarse_weight == RankingLoss().coarse_weight / 2  # the mean of theirs


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from(METRICS),
    st.sampled_from([0.003, 0.1, 1.0]),
    st.sampled_from([1.0, 10.0]),
    st.sampled_from([{}, {"smoothing": 0.0}, {"coarse_weight": 0.0}, {"smoothing": 0.1, "coarse_weight": 0.3}]),
    st.sampled_from(["mean", "sum", "none"]),
    st.booleans(),
)
def test_sign_0_is_the_mean_of_both_signs(seed, metric, epsilon, alpha, more, reduction, ties):
    embeddings, labels = batch(size=14, classes=3, seed=seed)
    if ties:  # few directions, so that many cosines are equal
        embeddings = embeddings.sign() * torch.tensor([1, 1, 0, 0, 0, 0])
    common = {"metric": metric, "epsilon": epsilon, "reduction": reduction, **more}
    both = RankingLoss(sign=0, alpha=alpha, **common)
    signs = RankingLoss(sign=+1, alpha=alpha, **common), RankingLoss(sign=-1, alpha=1.0, **common)
    value, gradients = value_and_gradients(lambda *x: called(both, *x).sum(), embeddings, labels)
    parts = [value_and_gradients(lambda *x, loss=loss: called(loss, *x).sum(), embeddings, labels) for loss in signs]
    close = {"atol": 1e-12 / epsilon, "rtol": 1e-10}
    torch.testing.assert_close(value, (parts[0][0] + parts[1][0]) / 2, **close)
    torch.testing.assert_close(gradients[0], (parts[0][1][0] + parts[1][1][0]) / 2, **close)


def test_sign_0_as_in_the_paper():
    both = RankingLoss.paper(sign=0)
    assert [(ranking.chosen.sign, ranking.chosen.alpha, ranking.share) for ranking in both.rankings] == [
        (+1, 10.0, 0.5),
        (-1, 1.0, 0.5),
    ]
    assert repr(both) == "RankingLoss(metric='ap', framework='dlm', epsilon=1, alpha=10, sign=0, reduction='mean')"
    assert "sign=-1" in repr(RankingLoss(sign=-1))
