"""Embeddings that are there already, mapped so that they rank better: scikit-learn's contract."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import nn

from rankshot.losses.registry import LOSSES
from rankshot.models.adapted import adapted
from rankshot.terminal import say

from .choosing import Choice, Shape, choose, made, spread_for, trials_of_classes, trials_of_marks
from .fitted_map import FittedMap
from .held_out import folds
from .learning import Learner, Lessons, Recipe, one_thread
from .marks import Marks, marks_of
from .rows import Rows
from .saved_transformer import Saved, opened, save
from .starts import STARTS, Start

WIDEST, PROJECTED = 2048, 512  # a map of more dimensions than these learns from so many principal directions
Learn = TypeVar("Learn", bound=Callable[..., Any])
USUAL_RATE, USUAL_DIMENSIONS = 0.01, 128
PRECISIONS = [np.float64, np.float32]
NO_SAMPLE_WEIGHT = (
    "takes no sample_weight: every row is an item of all the other rankings too, and a ranking has no halves of items. "
    "Leave rows out, or weight classes by how many rows of them you give"
)


def whole_or_not_at_all(learn: Learn) -> Learn:
    """What fails, or is interrupted, leaves the transformer as it was."""

    @wraps(learn)
    def learned(self: Any, *arguments: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return learn(self, *arguments, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return learned  # type: ignore[return-value]


class RankingTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A small map on top of vectors, learned so that each ranks those of its own class first.

    For embeddings of any model (DINO, CLIP, sentence-transformers) and a few labels: seconds on a CPU. The map is linear,
    or has one hidden layer. It starts in closed form, from class means and the spread within classes. Then it is improved
    by a loss: mean average precision, unless you choose another. The best start and the number of updates are found on
    rows that are held out: whole classes where there are four or more, since what ranks seen classes need not rank
    others. If X as it is ranks the held-out rows as well, it is kept, with a warning.

    `transform` gives vectors of length 1: cosine and Euclidean distance rank them alike.

    Args:
        n_components: dimensions of the map's vectors. None: as many as X has, or 512 where X has more than 2,048.
        loss: the name of a loss ("map-dlm", "map-ssvm", "smooth-ap", "supcon", "triplet", …), or a function of embeddings
            (B, D) and labels (B,) that gives a scalar.
        start: "identity", X as it is, or its first dimensions; "pca", X less its mean, along its principal directions;
            "auto", the best of these and of linear discriminant maps, by what is held out.
        hidden: width of a hidden layer. None: the map is linear.
        learning_rate: of the first update; it falls along a cosine. None: 0.01, and less where X has more than 128
            dimensions, in proportion.
        max_iter: most updates.
        batch_size: rows of an update.
        held_out: "classes", for a map that is to rank classes it has not seen; "rows", for one that is to rank more rows
            of the same classes; "auto", classes where there are four or more; None, nothing: `max_iter` updates,
            unchecked.
        validation_fraction: how much is held out: of rows, or of 20 classes or more; of fewer classes it is half.
        n_iter_no_change: evaluations without improvement after which updates end; 16 evaluations are `max_iter` updates.
        random_state: seed, or generator, of batches and of what is held out.
        verbose: 1 tells of every evaluation.

    Attributes:
        components_: (K, D), the linear map of X - offset_.
        offset_: (D,), what is subtracted first.
        n_iter_: how many updates were tried.
        best_iter_: how many updates the map has had.
        history_: the evaluations on the way.
        held_out_map_: mean average precision of held-out rows by the map.
        held_out_map_before_: the same by X as it is.
        is_identity_: whether X was kept as it is.

    Examples:
        >>> import numpy as np
        >>> y = np.repeat(np.arange(6), 4)  # 6 classes of 4 rows
        >>> noise = 3 * np.random.default_rng(0).normal(size=(24, 2))
        >>> X = np.column_stack([np.cos(y), np.sin(y), noise])  # two dimensions tell the class, two tell nothing
        >>> import torch
        >>> from rankshot import RankingTransformer
        >>> from rankshot.adaptation import ranked
        >>> round(ranked(torch.tensor(X), torch.tensor(y)).map, 2)
        0.35
        >>> mapped = RankingTransformer(max_iter=20, random_state=0).fit(X, y).transform(X)
        >>> mapped.shape, round(ranked(torch.tensor(mapped), torch.tensor(y)).map, 2)
        ((24, 4), 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "loss": [str, callable],
        "start": [StrOptions({"auto", "identity", "pca"})],
        "hidden": [Interval(Integral, 1, 2**14, closed="both"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 4, 2**16, closed="both")],
        "held_out": [StrOptions({"auto", "classes", "rows"}), None],
        "validation_fraction": [Interval(Real, 0, 0.5, closed="right")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        loss: Any = "map-dlm",
        start: str = "auto",
        hidden: int | None = None,
        learning_rate: float | None = None,
        max_iter: int = 200,
        batch_size: int = 128,
        held_out: str | None = "auto",
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.start = start
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.held_out = held_out
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    @one_thread()
    @whole_or_not_at_all
    def fit(
        self, X: Any, y: Any = None, *, alike: Any = None, unlike: Any = None, triples: Any = None, **more: Any
    ) -> RankingTransformer:
        """Learn a map of rows X (n, D), dense or sparse, in memory or memory-mapped.

        Args:
            X: (n, D) vectors.
            y: (n,) a class each; None for a row without one. It may be left out where there are marks.
            alike: pairs of rows (m, 2) that people have marked as alike.
            unlike: pairs of rows (m, 2) that they have marked as unlike.
            triples: (m, 3): the first row is like the second, and not like the third.
            **more: refused; `sample_weight` with a reason.

        Returns:
            The transformer itself.

        Raises:
            TypeError: if there are other arguments.
            ValueError: if there is nothing to learn from, or settings and data do not fit.
        """
        _refuse(more)
        X, labels, marks = self._checked(X, y, (alike, unlike, triples), reset=True)
        seed = self._seed()
        rows, shape = self._seen(X, seed)
        lessons = Lessons(rows, torch.from_numpy(labels), marks)
        recipe = Recipe(self.loss, self._rate(rows), self.max_iter, self.batch_size, seed)
        choice = self._choice(lessons, shape, recipe)
        if choice is None:  # nothing tells which start is best
            start = Start(1.0, 0.0) if self.start == "auto" and (labels >= 0).any() else self._starts(rows, shape)[0]
            choice = Choice(start, self.max_iter, float("nan"), float("nan"), True, [])
        may_be_identity = self.n_components in (None, X.shape[1])
        if not choice.is_better and may_be_identity:
            self._take(FittedMap(np.zeros(X.shape[1])), choice._replace(updates=0, held_out=choice.before))
        else:
            spread = None if choice.start is None else spread_for(lessons)
            learner = Learner(made(lessons, spread, choice.start, shape, seed), lessons, recipe)
            learner.learn(choice.updates)
            self._take(FittedMap.of(learner.map, rows), choice)
        return self._warned(choice, may_be_identity=may_be_identity)

    @one_thread()
    @whole_or_not_at_all
    def partial_fit(
        self, X: Any, y: Any = None, *, alike: Any = None, unlike: Any = None, triples: Any = None, **more: Any
    ) -> RankingTransformer:
        """Go on from the map that is there with these rows: one pass over them, and nothing is held out.

        The first call starts with the identity, or with principal directions where the map has fewer dimensions than X.
        Arguments as those of `fit`.
        """
        _refuse(more)
        is_first = not self.__sklearn_is_fitted__()
        X, labels, marks = self._checked(X, y, (alike, unlike, triples), reset=is_first)
        done, history = (0, []) if is_first else (self.n_iter_, self.history_)
        seed, updates = self._seed() + done, -(-X.shape[0] // self.batch_size)
        if is_first:
            rows, shape = self._seen(X, seed)
            lessons = Lessons(rows, torch.from_numpy(labels), marks)
            start = None if self.start != "pca" and shape.components == X.shape[1] else Start(None, 0.0)
            vector_map = made(lessons, None if start is None else spread_for(lessons), start, shape, seed)
        else:
            rows = Rows(X, self._map.offset, self._map.scale)
            lessons = Lessons(rows, torch.from_numpy(labels), marks)
            vector_map = self._map.module(resumed=True)
        recipe = Recipe(self.loss, self._rate(rows), max(self.max_iter, updates), self.batch_size, seed)
        learner = Learner(vector_map, lessons, recipe)
        history = [*history, {"update": done + updates, "loss": learner.learn(updates)}]
        choice = Choice(None, done + updates, float("nan"), float("nan"), True, history)
        self._take(FittedMap.of(learner.map, rows), choice)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Map X (n, D) to vectors (n, K) of length 1, in the precision of X."""
        check_is_fitted(self)
        return self._map(validate_data(self, X, reset=False, accept_sparse="csr", dtype=PRECISIONS))

    def behind(self, network: nn.Module) -> nn.Module:
        """Put the map behind a network, as one network that embeds pictures, can be saved, or exported to ONNX.

        Args:
            network: whose unit vectors, as an `Embedder` gives them, the map was learned from.

        Returns:
            The network with the map.

        Raises:
            ValueError: if the network has embeddings of another size.
        """
        check_is_fitted(self)
        return adapted(network, self._map.module())

    def save_pretrained(self, folder: str | Path) -> Path:
        """Save the map and its settings into a new folder, which `from_pretrained` opens."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        held_out = tuple(None if np.isnan(each) else each for each in (self.held_out_map_, self.held_out_map_before_))
        features = None if names is None else [str(name) for name in names]
        return save(Saved(self.get_params(), self._map, self.best_iter_, self.history_, held_out, features), folder)  # type: ignore[arg-type]

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> RankingTransformer:
        """Open what `save_pretrained` has written; it transforms as the one that was saved."""
        saved = opened(folder)
        known = cls().get_params().keys()
        made = cls(**{name: value for name, value in saved.settings.items() if name in known})
        made._validate_params()
        made.n_features_in_ = saved.map.dimensions
        if saved.features is not None:
            made.feature_names_in_ = np.asarray(saved.features, dtype=object)
        held_out, before = (float("nan") if each is None else each for each in saved.held_out)
        made._take(saved.map, Choice(None, saved.updates, held_out, before, True, saved.history))
        return made

    @property
    def components_(self) -> NDArray[np.float64]:
        """(K, D), the linear map of X - offset_."""
        check_is_fitted(self)
        return np.eye(self._map.dimensions) if self._map.weight is None else self._map.weight

    @property
    def offset_(self) -> NDArray[np.float64]:
        """(D,), what is subtracted from X first."""
        check_is_fitted(self)
        return self._map.offset

    @property
    def is_identity_(self) -> bool:
        """Whether X was kept as it is."""
        check_is_fitted(self)
        return self._map.weight is None

    @property
    def _n_features_out(self) -> int:
        return self._map.components

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checked(
        self, X: Any, y: Any, marked: tuple[Any, Any, Any], *, reset: bool
    ) -> tuple[Any, NDArray[np.int64], Marks | None]:
        """X, the class of every row as a number, -1 where it has none, and the marks."""
        self._validate_params()
        if isinstance(self.loss, str):
            LOSSES[self.loss]  # complains of an unknown one
        has_marks = any(each is not None for each in marked)
        if y is None and not has_marks:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=PRECISIONS, ensure_min_samples=2)
        marks = marks_of(*marked, X.shape[0])
        labels = np.full(X.shape[0], -1) if y is None else _numbered(y, X, may_be_alone=marks is not None)
        if y is None and (marks is None or not len(marks.anchors)):
            raise ValueError("without y there must be marks of rows that are alike: pairs, or triples")
        return X, labels, marks

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _seen(self, X: Any, seed: int) -> tuple[Rows, Shape]:
        """The rows as a map learns from them, and the shape of the map."""
        dimensions = X.shape[1]
        if self.n_components is not None and self.n_components > dimensions:
            raise ValueError(
                "The preferred dimensionality of the projected space `n_components` "
                f"({self.n_components}) cannot be greater than the given data dimensionality ({dimensions})!"
            )
        is_wide = self.start != "identity" and dimensions > WIDEST
        rows = Rows.of(X, max(PROJECTED, self.n_components or 0) if is_wide else None, seed)
        return rows, Shape(min(self.n_components or dimensions, rows.dimensions), self.hidden)

    def _rate(self, rows: Rows) -> float:
        """Adam moves every weight by about as much: the more of them a component has, the further it moves."""
        if self.learning_rate is not None:
            return float(self.learning_rate)
        return float(USUAL_RATE * min(1.0, USUAL_DIMENSIONS / rows.dimensions))

    def _starts(self, rows: Rows, shape: Shape) -> list[Start | None]:
        centred = Start(None, 0.0)
        if self.start == "pca":
            return [centred]
        if self.start == "identity":
            return [None]
        return [None, *STARTS] if shape.components == rows.X.shape[1] else list(STARTS)

    def _choice(self, lessons: Lessons, shape: Shape, recipe: Recipe) -> Choice | None:
        if self.held_out is None:
            return None
        labels, starts = lessons.labels.numpy(), self._starts(lessons.rows, shape)
        if (labels >= 0).any():
            trials = trials_of_classes(lessons, folds(labels, self.held_out, self.validation_fraction, recipe.seed))
        else:
            trials = trials_of_marks(lessons, self.validation_fraction, recipe.seed)
            starts = [start for start in starts if start in (None, Start(None, 0.0))]  # others are made of classes
        if not trials:
            return None
        tell = (lambda line: say(f"RankingTransformer  {line}")) if self.verbose else (lambda line: None)
        return choose(trials, starts, shape, recipe, self.n_iter_no_change, tell)

    def _take(self, found: FittedMap, choice: Choice) -> None:
        self._map = found
        self.best_iter_, self.history_ = choice.updates, choice.history
        self.n_iter_ = int(max([choice.updates, *(each["update"] for each in choice.history)]))
        self.held_out_map_, self.held_out_map_before_ = choice.held_out, choice.before

    def _warned(self, choice: Choice, *, may_be_identity: bool) -> RankingTransformer:
        """It never makes things worse without saying so."""
        if self.held_out is not None and np.isnan(choice.held_out):
            warnings.warn(
                "there are too few rows to hold any out: whether this map ranks better than X as it is, is not known",
                stacklevel=5,
            )
        elif not choice.is_better:
            kept = "X is kept as it is" if may_be_identity else f"it has {self._map.components} dimensions all the same"
            warnings.warn(
                f"what is held out is ranked no better by any map (mAP {choice.held_out:.4f}) than by X as it is "
                f"({choice.before:.4f}), or hardly so: {kept}",
                stacklevel=5,
            )
        return self


def _numbered(y: Any, X: Any, *, may_be_alone: bool) -> NDArray[np.int64]:
    """The class of every row as a number; -1: it has none."""
    if hasattr(y, "isna") and hasattr(y, "to_numpy"):  # pandas has several ways to say that a label is missing
        y = np.where(y.isna().to_numpy(), None, y.astype(object).to_numpy())
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    known = np.array([label is not None for label in y]) if y.dtype == object else np.ones(len(y), dtype=bool)
    of_known = y[known]
    if of_known.dtype == object and len({isinstance(label, str) for label in of_known}) == 1:
        of_known = np.asarray(of_known.tolist())  # numbers, or texts, as numpy has them
    assert_all_finite(of_known, input_name="y")
    with warnings.catch_warnings():  # many classes of few rows are what this is for
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        check_classification_targets(of_known)
    numbers = np.full(len(y), -1)
    classes, numbers[known] = np.unique(of_known, return_inverse=True)
    if may_be_alone:
        return numbers
    if len(classes) < 2:
        raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class")
    if np.bincount(numbers[known]).max() < 2:
        raise ValueError(
            "The most populated class in y has only 1 member, which is too few. "
            "The minimum number of members of some class cannot be less than 2."
        )
    return numbers


def _refuse(more: dict[str, Any]) -> None:
    for name, value in more.items():
        if name == "sample_weight" and value is None:
            continue
        if name == "sample_weight":
            raise TypeError(f"RankingTransformer {NO_SAMPLE_WEIGHT}")
        raise TypeError(f"RankingTransformer got an unexpected keyword argument {name!r}")
