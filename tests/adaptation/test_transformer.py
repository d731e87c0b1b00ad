"""RankingTransformer: scikit-learn's contract, what it learns, and that it never makes things worse in silence."""

import warnings
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankshot import FewShotClassifier, Gallery, RankingTransformer
from rankshot.adaptation import ranked
from rankshot.losses import SmoothAPLoss
from rankshot.losses.registry import LOSSES

ESTIMATORS = [RankingTransformer(max_iter=2), RankingTransformer(1, start="pca", hidden=3, held_out="rows", max_iter=2)]


@pytest.mark.filterwarnings("ignore:what is held out is ranked no better", "ignore:there are too few rows")
@parametrize_with_checks(ESTIMATORS)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def hidden_classes(seed=0, classes=12, rows=20, useful=4, noise=12, scale=3.0):
    """Classes that differ in a few of many dimensions: the others are noise, and larger."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(classes, useful))
    y = np.repeat(np.arange(classes), rows)
    X = np.concatenate(
        [centres[y] + 0.3 * generator.normal(size=(len(y), useful)), scale * generator.normal(size=(len(y), noise))], 1
    )
    return X @ np.linalg.qr(generator.normal(size=(useful + noise,) * 2))[0], y


def halves(X, y):
    """Classes to learn from, and others."""
    learned = y < (y.max() + 1) // 2
    return X[learned], y[learned], X[~learned], y[~learned]


def precision(X, y):
    return ranked(torch.as_tensor(np.asarray(X)).float(), torch.as_tensor(y)).map


@pytest.mark.parametrize("loss", [*LOSSES, SmoothAPLoss()], ids=str)
def test_classes_that_it_has_not_seen_are_ranked_better_by_every_loss(loss):
    X, y, other_X, other_y = halves(*hidden_classes())
    transformer = RankingTransformer(loss=loss, max_iter=40, random_state=0).fit(X, y)
    assert precision(transformer.transform(other_X), other_y) > 1.5 * precision(other_X, other_y)
    assert transformer.held_out_map_ > transformer.held_out_map_before_
    assert not transformer.is_identity_


@pytest.mark.parametrize("settings", [{"hidden": 8}, {"n_components": 4}, {"start": "pca"}, {"start": "identity"}], ids=str)
def test_every_kind_of_map(settings):
    X, y, other_X, other_y = halves(*hidden_classes())
    transformer = RankingTransformer(**settings, max_iter=100, random_state=0).fit(X, y)
    found = transformer.transform(other_X)
    assert found.shape == (len(other_X), settings.get("n_components", X.shape[1]))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)
    assert precision(found, other_y) > 1.2 * precision(other_X, other_y)
    assert list(transformer.get_feature_names_out())[:2] == ["rankingtransformer0", "rankingtransformer1"]


def test_the_updates_themselves_help():
    """Not the start alone: from the identity, by every update until it is best."""
    X, y, other_X, other_y = halves(*hidden_classes(classes=40))
    transformer = RankingTransformer(start="identity", random_state=0).fit(X, y)
    assert transformer.best_iter_ > 0
    told = [each["held_out"] for each in transformer.history_]
    assert max(told) > told[0]
    assert transformer.held_out_map_ > transformer.held_out_map_before_
    assert precision(transformer.transform(other_X), other_y) > precision(other_X, other_y)


def test_without_hidden_layer_it_is_its_components():
    X, y = hidden_classes()
    transformer = RankingTransformer(random_state=0, max_iter=20).fit(X, y)
    mapped = (X - transformer.offset_) @ transformer.components_.T
    np.testing.assert_allclose(transformer.transform(X), mapped / np.linalg.norm(mapped, axis=1, keepdims=True))


@cache
def fitted_in_float64(dtype):
    """To dense rows of these numbers: the same for every kind of matrix, so that it is learned once."""
    X, y = hidden_classes()
    X = np.where(np.abs(X) > 1, X, 0).astype(dtype).astype(np.float64)
    return RankingTransformer(random_state=0, max_iter=10).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_dense_and_sparse_in_both_precisions(kind, dtype):
    X, y = hidden_classes()
    X = np.where(np.abs(X) > 1, X, 0).astype(dtype)
    reference = fitted_in_float64(dtype)
    transformer = RankingTransformer(random_state=0, max_iter=10).fit(kind(X), y)
    found = transformer.transform(kind(X))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, reference.transform(X.astype(np.float64)), atol=2e-3)


def test_values_far_from_zero_keep_their_digits():
    """The mean is taken off before anything is rounded to float32."""
    X, y = hidden_classes()
    near = RankingTransformer(random_state=0, max_iter=10, start="pca").fit(X, y).transform(X)
    far = RankingTransformer(random_state=0, max_iter=10, start="pca").fit(X + 1e7, y).transform(X + 1e7)
    np.testing.assert_allclose(near, far, atol=1e-3)


def test_thousands_of_dimensions():
    """Of which a few tell the classes apart; learned along principal directions."""
    generator = np.random.default_rng(0)
    X, y = hidden_classes(useful=10, noise=30)
    wide = np.concatenate([X, 0.01 * generator.normal(size=(len(X), 3000))], 1).astype(np.float32)
    wide, y, other_X, other_y = halves(wide, y)
    for some in (np.asarray, sparse.csr_array):
        transformer = RankingTransformer(random_state=0, max_iter=10).fit(some(wide), y)
        assert transformer.components_.shape == (len(wide), 3040)  # no more than there are rows
        found = transformer.transform(some(other_X))
        assert precision(found, other_y) > precision(other_X, other_y)


def test_rows_fewer_than_dimensions_lose_nothing():
    """Directions that no learned row has are kept: rows of other classes have them."""
    X, y, other_X, other_y = halves(*hidden_classes(useful=40, noise=600, scale=0.5, rows=20))
    with warnings.catch_warnings():  # there may be little to gain
        warnings.simplefilter("ignore")
        transformer = RankingTransformer(random_state=0, max_iter=10).fit(X, y)
    assert precision(transformer.transform(other_X), other_y) > 0.98 * precision(other_X, other_y)


def test_memory_mapped_rows_are_read_where_they_are_needed(tmp_path):
    generator = np.random.default_rng(0)
    X = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (200_000, 16))
    y = generator.integers(0, 50, len(X))
    X[:] = generator.normal(size=(50, 16))[y] + generator.normal(size=X.shape) * np.linspace(0.1, 5, 16)
    X.flush()
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    transformer = RankingTransformer(random_state=0, max_iter=20).fit(mapped, y)
    assert transformer.held_out_map_ >= transformer.held_out_map_before_
    assert transformer.transform(mapped[:1000]).shape == (1000, 16)


def test_a_seed_gives_the_same_map_again():
    X, y = hidden_classes()
    one, same, other = (RankingTransformer(random_state=seed, max_iter=20).fit(X, y) for seed in (0, 0, 1))
    assert np.array_equal(one.components_, same.components_)
    assert not np.array_equal(one.components_, other.components_)


def test_labels_of_any_kind_and_classes_as_uneven_as_they_come():
    X, y = hidden_classes()
    keep = np.concatenate([np.flatnonzero(y == label)[: 1 + label] for label in range(12)])  # one class of one row
    names = np.array([f"class {label}" for label in y[keep]])
    by_name = RankingTransformer(random_state=0, max_iter=10).fit(X[keep], names)
    by_object = RankingTransformer(random_state=0, max_iter=10).fit(X[keep], names.astype(object))
    assert np.array_equal(by_name.components_, by_object.components_)


def test_rows_without_a_label_are_left_out():
    X, y = hidden_classes()
    some = np.where(np.arange(len(y)) % 2 == 0, y.astype(object), None)
    halved = RankingTransformer(random_state=0, max_iter=10).fit(X, some)
    assert halved.held_out_map_ > halved.held_out_map_before_


def test_x_is_kept_where_nothing_ranks_better():
    """Classes in all directions alike, seen among noise of no class: there is nothing to learn for others."""
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 15)
    X = generator.normal(size=(6, 8))[y] + 0.0001 * generator.normal(size=(90, 8))
    with pytest.warns(UserWarning, match=r"ranked no better by any map .* than by X as it is .* X is kept as it is"):
        transformer = RankingTransformer(random_state=0, max_iter=10).fit(X, y)
    assert transformer.is_identity_
    np.testing.assert_allclose(transformer.transform(X), X / np.linalg.norm(X, axis=1, keepdims=True))
    assert np.array_equal(transformer.components_, np.eye(8))
    with pytest.warns(UserWarning, match="it has 3 dimensions all the same"):
        fewer = RankingTransformer(3, random_state=0, max_iter=10).fit(X, y)
    assert not fewer.is_identity_


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(2, 9), st.integers(1, 5))
def test_what_is_held_out_is_never_worse_in_silence(seed, classes, rows, dimensions):
    """Of numbers without any meaning."""
    generator = np.random.default_rng(seed)
    X, y = generator.normal(size=(classes * rows, dimensions)), np.repeat(np.arange(classes), rows)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        transformer = RankingTransformer(random_state=seed, max_iter=5).fit(X, y)
    is_better = transformer.held_out_map_ > transformer.held_out_map_before_
    assert is_better == (not told)
    assert is_better or transformer.is_identity_ or np.isnan(transformer.held_out_map_)


@pytest.mark.parametrize(("rows", "dimensions", "classes"), [(300, 2100, 20), (300, 600, 20), (120, 1024, 12)])
@pytest.mark.parametrize("centres", [0.0, 0.3])
def test_fewer_rows_than_dimensions_promise_nothing(rows, dimensions, classes, centres):
    """What is learned by heart says nothing of others: noise alone, and classes in all directions alike."""
    generator = np.random.default_rng(0)
    both = np.arange(2 * rows) % classes + classes * (np.arange(2 * rows) >= rows)  # other classes in the second half
    X = centres * generator.normal(size=(2 * classes, dimensions))[both] + generator.normal(size=(2 * rows, dimensions))
    X, y, other_X, other_y = X[:rows], both[:rows], X[rows:], both[rows:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformer = RankingTransformer(random_state=0, max_iter=16).fit(X, y)
    assert transformer.held_out_map_ < 1.2 * transformer.held_out_map_before_
    assert precision(transformer.transform(other_X), other_y) > 0.97 * precision(other_X, other_y)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e39, 1e150])
def test_values_of_any_size(factor):
    X, y = hidden_classes()
    usual, scaled = (RankingTransformer(random_state=0, max_iter=3).fit(each, y) for each in (X, X * factor))
    np.testing.assert_allclose(scaled.transform(X * factor), usual.transform(X), atol=1e-4)


def test_float32_at_the_end_of_its_range():
    X, y = hidden_classes()
    tiny = (X * 1e-38).astype(np.float32)
    assert np.isfinite(RankingTransformer(random_state=0, max_iter=3).fit(tiny, y).transform(tiny)).all()


def test_what_fails_leaves_everything_as_it_was():
    X, y = hidden_classes()
    transformer = RankingTransformer(random_state=0, max_iter=3).fit(X, y)
    before = transformer.transform(X)

    def interrupted(embeddings, labels):
        raise KeyboardInterrupt

    transformer.set_params(loss=interrupted)
    with pytest.raises(KeyboardInterrupt):
        transformer.fit(X[:, :5], y)
    assert np.array_equal(transformer.transform(X), before)


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_labels_of_pandas_that_are_missing(dtype):
    pandas = pytest.importorskip("pandas")
    X, y = hidden_classes()
    some = [f"k{label}" if row % 3 else None for row, label in enumerate(y)]
    plain = RankingTransformer(random_state=0, max_iter=3).fit(X, some)
    series = RankingTransformer(random_state=0, max_iter=3).fit(X, pandas.Series(some, dtype=dtype))
    assert np.array_equal(plain.components_, series.components_)


def test_too_few_rows_to_check_it_by():
    X = np.array([[1.0, 0.0], [0.9, 0.2], [0.0, 1.0], [0.1, 0.9]])
    with pytest.warns(UserWarning, match="too few rows to hold any out"):
        RankingTransformer(random_state=0, max_iter=3).fit(X, [0, 0, 1, 1])


def test_it_tells_of_every_evaluation(capsys):
    X, y = hidden_classes()
    RankingTransformer(random_state=0, max_iter=20, verbose=1).fit(X, y)
    told = capsys.readouterr().out.splitlines()
    assert "as it is" in told[0]
    assert all("held out: mAP" in line for line in told)
    assert len(told) > 3


class TestPartialFit:
    def test_it_goes_on_from_the_map_that_is_there(self):
        X, y, other_X, other_y = halves(*hidden_classes(classes=40))
        transformer = RankingTransformer(random_state=0, batch_size=64)
        found = []
        for _ in range(4):
            for part in range(4):
                transformer.partial_fit(X[part::4], y[part::4])
            found.append(precision(transformer.transform(other_X), other_y))
        assert found == sorted(found)
        assert found[0] > precision(other_X, other_y)
        assert transformer.n_iter_ == 16 * -(-len(X) // 4 // 64)
        assert len(transformer.history_) == 16

    @pytest.mark.parametrize("settings", [{}, {"hidden": 4}, {"n_components": 3}], ids=str)
    def test_after_fit_nothing_is_lost(self, settings):
        """At a rate of almost nothing, what was learned stays as it is."""
        X, y = hidden_classes()
        transformer = RankingTransformer(**settings, random_state=0, max_iter=20).fit(X, y)
        before = transformer.transform(X)
        transformer.set_params(learning_rate=1e-12).partial_fit(X, y)
        np.testing.assert_allclose(transformer.transform(X), before, atol=1e-5)

    def test_after_x_was_kept(self):
        generator = np.random.default_rng(0)
        X, y = generator.normal(size=(40, 3)), np.repeat(np.arange(4), 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transformer = RankingTransformer(random_state=0, max_iter=3).fit(X, y)
        transformer.partial_fit(X, y)
        assert not transformer.is_identity_


class TestMarks:
    def told(self, y, count, seed=0):
        """Triples as people click them."""
        generator = np.random.default_rng(seed)
        triples = []
        while len(triples) < count:
            first, like, unlike = generator.integers(0, len(y), 3)
            if y[first] == y[like] != y[unlike] and first != like:
                triples.append((first, like, unlike))
        return np.array(triples)

    def test_triples_alone(self):
        X, y = hidden_classes(scale=1.0)
        seen = len(y) // 2
        transformer = RankingTransformer(random_state=0).fit(X, triples=self.told(y[:seen], 300))
        assert precision(transformer.transform(X[seen:]), y[seen:]) > 1.2 * precision(X[seen:], y[seen:])

    @pytest.mark.slow
    def test_pairs_alone(self):
        X, y = hidden_classes(scale=1.0)
        triples = self.told(y, 600)
        transformer = RankingTransformer(random_state=0).fit(X, alike=triples[:, :2], unlike=triples[:, [0, 2]])
        assert precision(transformer.transform(X), y) > precision(X, y)
        only_alike = RankingTransformer(random_state=0).fit(X, alike=triples[:, :2])
        assert precision(only_alike.transform(X), y) > precision(X, y)

    @pytest.mark.slow
    def test_beside_labels(self):
        X, y = hidden_classes(scale=1.0)
        known = np.where(y < 6, y.astype(object), None)
        without = RankingTransformer(random_state=0, max_iter=50, start="pca").fit(X, known)
        beside = RankingTransformer(random_state=0, max_iter=50, start="pca").fit(X, known, triples=self.told(y, 300))
        assert not np.array_equal(without.components_, beside.components_)

    @pytest.mark.parametrize(
        ("marks", "message"),
        [
            ({"alike": [[0, 99999]]}, "alike must be indices of rows, from 0 to 239, got 99999"),
            ({"alike": [[0, -1]]}, "from 0 to 239, got -1"),
            ({"triples": [[0, 1]]}, r"triples must be whole numbers of shape \(m, 3\)"),
            ({"alike": [[0.5, 1.0]]}, "alike must be whole numbers"),
            ({"unlike": [[3, 3]]}, "unlike compares row 3 with itself"),
            ({"alike": [[1, 2]], "unlike": [[2, 1]]}, "rows 1 and 2 are marked as alike and as unlike"),
            ({"unlike": [[1, 2]]}, "there must be marks of rows that are alike"),
            ({"alike": np.zeros((0, 2), int)}, "there must be marks of rows that are alike"),
        ],
        ids=str,
    )
    def test_bad_marks(self, marks, message):
        X, _ = hidden_classes()
        with pytest.raises(ValueError, match=message):
            RankingTransformer().fit(X, **marks)


class TestInPipelines:
    def test_before_neighbours(self):
        X, y = load_wine(return_X_y=True)
        pipeline = make_pipeline(StandardScaler(), RankingTransformer(random_state=0, max_iter=40), KNeighborsClassifier(5))
        assert pipeline.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.93

    def test_before_a_few_shot_classifier_and_a_gallery(self):
        X, y = load_digits(return_X_y=True)
        transformer = RankingTransformer(random_state=0, max_iter=20).fit(X[y < 5], y[y < 5])
        Z, of_rows = transformer.transform(X[y >= 5]), y[y >= 5]
        shown = np.concatenate([np.flatnonzero(of_rows == digit)[:5] for digit in range(5, 10)])
        pipeline = make_pipeline(transformer, FewShotClassifier())
        assert pipeline[-1].fit(Z[shown], of_rows[shown]).score(Z, of_rows) > 0.8
        with Gallery(dimensions=Z.shape[1]) as gallery:
            gallery.add(Z, metadata=[{"digit": int(digit)} for digit in of_rows])
            assert gallery.search(Z[0], k=1)[0].metadata == {"digit": int(of_rows[0])}

    def test_clones_and_copies(self):
        transformer = RankingTransformer(3, loss=SmoothAPLoss(), hidden=2)
        copied = clone(transformer)
        assert copied.n_components == 3
        assert isinstance(copied.loss, SmoothAPLoss)
        with pytest.raises(NotFittedError, match="This RankingTransformer instance is not fitted yet"):
            copied.transform([[1.0]])


class TestBadInput:
    X, y = hidden_classes()

    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            (np.full((4, 2), np.nan), [0, 0, 1, 1], "Input X contains NaN"),
            (np.full((4, 2), np.inf), [0, 0, 1, 1], "Input X contains infinity"),
            (np.ones((4, 2)), [0.0, 0.0, np.nan, 1.0], "Input y contains NaN"),
            (np.ones((4, 2)), [0, 0, 0, 0], "The number of classes has to be greater than one; got 1 class"),
            (np.ones((4, 2)), [0, 1, 2, 3], "The most populated class in y has only 1 member, which is too few"),
            (np.ones((4, 2)), [0, 0, 1], "inconsistent numbers of samples"),
            (np.ones((4, 2)), [0.1, 0.2, 0.3, 0.4], "Unknown label type"),
            (np.ones((4, 2)), None, "requires y to be passed, but the target y is None"),
            (np.ones((1, 2)), [0], "minimum of 2 is required"),
            (np.ones(4), [0, 0, 1, 1], "Expected 2D array, got 1D array instead"),
        ],
    )
    def test_in_scikit_learns_words(self, X, y, message):
        with pytest.raises(ValueError, match=message):
            RankingTransformer().fit(X, y)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_components": 17}, r"`n_components` \(17\) cannot be greater than the given data dimensionality \(16\)!"),
            ({"n_components": 0}, "The 'n_components' parameter of RankingTransformer must be an int in the range"),
            ({"start": "lda"}, "The 'start' parameter of RankingTransformer must be a str among"),
            ({"max_iter": 0}, "The 'max_iter' parameter"),
            ({"loss": "map-dml"}, "unknown loss 'map-dml': did you mean 'map-dlm'"),
        ],
        ids=str,
    )
    def test_settings(self, settings, message):
        with pytest.raises(ValueError, match=message):
            RankingTransformer(**settings).fit(self.X, self.y)

    def test_held_out_classes_of_which_there_are_too_few(self):
        X, y = load_wine(return_X_y=True)
        with pytest.raises(ValueError, match="held_out='classes' needs 4 classes of two rows or more, got 3: use 'rows'"):
            RankingTransformer(held_out="classes").fit(X, y)

    def test_other_dimensions_than_it_has_learned(self):
        transformer = RankingTransformer(max_iter=2, random_state=0, held_out=None).fit(self.X, self.y)
        with pytest.raises(ValueError, match="X has 3 features, but RankingTransformer is expecting 16 features as input"):
            transformer.transform(np.ones((2, 3)))
        with pytest.raises(ValueError, match="X has 3 features"):
            transformer.partial_fit(np.ones((4, 3)), [0, 0, 1, 1])

    def test_sample_weights_are_refused_with_a_reason(self):
        for call in (RankingTransformer().fit, RankingTransformer().partial_fit):
            with pytest.raises(
                TypeError, match="takes no sample_weight: every row is an item of all the other rankings too"
            ):
                call(self.X, self.y, sample_weight=np.ones(len(self.y)))
        with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
            RankingTransformer().fit(self.X, self.y, weights=1)
        RankingTransformer(max_iter=1, random_state=0).fit(self.X, self.y, sample_weight=None)
