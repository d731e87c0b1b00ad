"""Teach a class with a few pictures: scikit-learn's contract over any embedding network."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d, validate_data
from torch import Tensor, nn

from rankshot.fewshot.class_means import other_classes
from rankshot.fewshot.rules import BEST, LINEAR, check_rule, prototypes, scores_by
from rankshot.vectors import unit_vectors

from .embedder import Embedder
from .pictures import name_of
from .rejection import Rejection, among_themselves, calibrated, judged, nearness
from .saved_classifier import SETTINGS, Saved, opened, save

SIMILARITIES_AT_ONCE = 2**22
TEMPERATURES = tuple(0.001 * 2**step for step in range(12))  # of predict_proba: 0.001 to 2
EXAMPLES_TO_TRY = 50  # to find it by
FITTED, FEWEST_TO_TRY = 2000, 5  # examples in all the classifiers that logistic regression fits for that, one by one
USUAL_TEMPERATURE = 0.05  # where the examples cannot tell


class Neighbour(NamedTuple):
    """An example that is near to an image.

    Attributes:
        place: its number among the examples that were taught.
        name: its path, or "example N".
        label: its class.
        similarity: its cosine with the image.

    Examples:
        >>> from rankshot import FewShotClassifier
        >>> classifier = FewShotClassifier().fit([[1.0, 0.0], [0.0, 1.0]], ["right", "up"])
        >>> neighbour = classifier.neighbours([[0.6, 0.8]], k=1)[0][0]
        >>> neighbour.place, neighbour.name, str(neighbour.label), round(neighbour.similarity, 4)
        (1, 'example 1', 'up', 0.8)
    """

    place: int
    name: str
    label: Any
    similarity: float


class Taught(NamedTuple):
    """All that was learned, as one value: who answers takes it once, whatever others teach meanwhile.

    support     (n, D) float64, of length 1
    labels      (n,) indices into classes
    names       of the examples
    prototypes  (classes, D)
    weights     (classes, D), of a rule that learns a vector of each class
    others      (classes, D), other classes that the network was trained on
    """

    support: NDArray[np.float64]
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    names: list[str]
    prototypes: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    rejection: Rejection | None
    temperature: float
    others: Tensor | None = None


class Asked(NamedTuple):
    """Images that have been embedded and checked, for several questions about them; and what was taught then.

    vectors   (n, D) float64, of length 1
    """

    taught: Taught
    vectors: Tensor


TEACHING = threading.RLock()  # two threads that teach at once: the second adds to what the first has taught


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classifies images by a few examples of each class, with no training. A scikit-learn classifier.

    Classes can be added (`partial_fit`) and removed (`remove_class`) at any time. Threads may share one: an answer comes
    from what was taught at one moment.

    Args:
        embedder: what makes vectors of images: a run folder, the name of weights, "strongest" for the strongest network
            for photographs that is installed, or an `Embedder`. X are then images: paths, bytes, Pillow images, arrays.
            None: X are embeddings already.
        rule: "logistic": logistic regression on the examples; "prototype": the class whose mean is nearest; "ap", the
            paper's: the class whose examples the query ranks best, by average precision; "nearest": that of the nearest
            example. "auto": logistic regression if there are two classes or more.
        reject: answer `unknown` where an image is none of these: the share of known images that may be turned away, such
            as 0.05. The threshold is found by leaving out one example at a time or, with one example a class, comes with
            the weights. None: never.
        threshold: of the `nearness` to the classes, instead of looking for one.
        unknown: the answer for none of these.

    Attributes:
        classes_: (classes,) the labels, sorted.
        support_: (n, D) the examples, as unit vectors.
        support_labels_: (n,) indices into `classes_`.
        support_names_: what the examples are called.
        prototypes_: (classes, D) the directions of the class means.
        rejection_: the threshold, and how often it is wrong by the examples themselves; None without `reject` or
            `threshold`.
        temperature_: of `predict_proba`.

    Examples:
        >>> from rankshot import FewShotClassifier
        >>> classifier = FewShotClassifier().fit([[1.0, 0.1], [0.9, 0.0], [0.0, 1.0]], ["right", "right", "up"])
        >>> classifier.predict([[0.2, 0.9], [0.8, 0.3]]).tolist()
        ['up', 'right']
        >>> classifier.nearness([[0.6, 0.8]]).round(4).tolist()  # the cosine with the mean of the nearest class
        [0.8]
        >>> classifier.partial_fit([[-1.0, 0.0]], ["left"]).predict([[-0.9, 0.2]]).tolist()
        ['left']
        >>> careful = FewShotClassifier(threshold=0.9, unknown="none").fit([[1.0, 0.0], [0.0, 1.0]], ["right", "up"])
        >>> careful.predict([[0.0, 2.0], [0.7, 0.7]]).tolist()  # of cosines 1.0 and 0.71
        ['up', 'none']
    """

    def __init__(
        self,
        embedder: str | Path | Embedder | None = None,
        *,
        rule: str = "auto",
        reject: float | None = None,
        threshold: float | None = None,
        unknown: Any = None,
    ) -> None:
        self.embedder = embedder
        self.rule = rule
        self.reject = reject
        self.threshold = threshold
        self.unknown = unknown

    def fit(self, X: Any, y: Any) -> FewShotClassifier:
        """Learn these examples and no others.

        Args:
            X: images, or embeddings (n, D).
            y: (n,) labels, all texts or all numbers.

        Returns:
            The classifier itself.

        Raises:
            ValueError: if X and y do not fit, or a setting is out of range.
            Unreadable: if an image cannot be read.
        """
        self._check_settings()
        return self._learn(X, y, first=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> FewShotClassifier:
        """Learn more examples, of known classes or of new ones; what was learned before stays.

        Args:
            X: images, or embeddings (n, D).
            y: (n,) labels.
            classes: not needed: classes are those that have examples.

        Returns:
            The classifier itself.
        """
        self._check_settings()
        return self._learn(X, y, first=not self.__sklearn_is_fitted__())

    def remove_class(self, label: Any) -> FewShotClassifier:
        """Forget a class and its examples.

        Raises:
            ValueError: if there is no such class, or it is the only one.
        """
        with TEACHING:
            taught = self._now()
            (matches,) = np.nonzero(taught.classes == label)
            if not len(matches):
                raise ValueError(f"there is no class {label!r}: there is {', '.join(map(repr, taught.classes.tolist()))}")
            if len(taught.classes) == 1:
                raise ValueError(f"{label!r} is the only class: fit others instead")
            stays = taught.labels != matches[0]
            names = [name for name, is_kept in zip(taught.names, stays, strict=True) if is_kept]
            self._taught = self._remembered(taught.support[stays], taught.classes[taught.labels[stays]], names)
        return self

    def save_pretrained(self, folder: str | Path) -> Path:
        """Save all that it has learned into a new folder, with its network; `from_pretrained` opens it anywhere."""
        check_is_fitted(self)
        taught, settings = self._now(), {name: getattr(self, name) for name in SETTINGS}
        labels = taught.classes[taught.labels]
        return save(Saved(settings, self._embedder(), taught.support, labels, taught.names), folder)

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, network: nn.Module | None = None, *, device: str = "auto"
    ) -> FewShotClassifier:
        """Open what `save_pretrained` has written: it answers as the one that was saved, and can learn more.

        Args:
            folder: that it was saved in.
            network: a network of one's own, which the weights in the folder are for. One that is registered is not
                needed.
            device: where its network computes, as of an `Embedder`.

        Returns:
            The classifier.
        """
        saved = opened(folder, network, device)
        classifier = cls(saved.embedder, **saved.settings)
        classifier._check_settings()
        classifier.n_features_in_ = saved.vectors.shape[1]
        classifier._taught = classifier._remembered(saved.vectors, saved.labels, saved.names)
        return classifier

    def named(self, names: Sequence[str]) -> FewShotClassifier:
        """Call the examples by these names, in their order.

        Raises:
            ValueError: if there are not as many names as examples.
        """
        with TEACHING:
            taught = self._now()
            if len(names) != len(taught.names):
                raise ValueError(f"there must be a name for each of {len(taught.names)} examples, got {len(names)}")
            self._taught = taught._replace(names=list(names))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each image, or `unknown`: (n,)."""
        taught, vectors = self.asked(X)
        if not len(vectors):
            return np.asarray(taught.classes[:0])
        answers: NDArray[Any] = taught.classes[self._scores(taught, vectors).argmax(-1).numpy()]
        if taught.rejection is None:
            return answers
        belongs = (_nearness(taught, vectors) >= taught.rejection.threshold).numpy()
        if np.asarray(self.unknown).dtype.kind == answers.dtype.kind:
            return np.where(belongs, answers, np.asarray(self.unknown))  # as an array: wide enough for both
        answers = answers.astype(object)
        answers[~belongs] = self.unknown
        return answers

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right answers, where `unknown` is one like any other."""
        right = [one == other for one, other in zip(self.predict(X).tolist(), np.asarray(y).tolist(), strict=True)]
        return float(np.average(right, weights=sample_weight))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class among those that are taught, (n, classes): a softmax of the rule's scores.

        The temperature is the one that suits the examples best, each left out once. It says nothing of images that are
        none of these.
        """
        taught, vectors = self.asked(X)
        return np.asarray((self._scores(taught, vectors) / taught.temperature).softmax(-1).numpy())

    def nearness(self, X: Any) -> NDArray[np.float64]:
        """How near each image is to the nearest class, (n,): what `threshold` is compared with.

        It is the cosine with the mean of that class. Where the weights bring the classes that the network was trained on,
        the likeness to these counts against it.
        """
        return np.asarray(_nearness(*self.asked(X)).numpy())

    def neighbours(self, X: Any, k: int = 5, of: Sequence[Any] | None = None) -> list[list[Neighbour]]:
        """For each image the examples nearest to it, the nearest first.

        Args:
            X: images, or embeddings (n, D).
            k: how many, at most.
            of: for each image a class, such as `predict` has answered: examples of that class alone, or of any if there
                is no such class. None: of any.

        Returns:
            A list of `Neighbour` for each image.

        Raises:
            ValueError: if `k` is below 1, or `of` is not one class an image.
        """
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k must be a whole number of 1 or more, got {k!r}")
        taught, vectors = self.asked(X)
        if of is not None and len(of) != len(vectors):
            raise ValueError(f"of must be a class for each of {len(vectors)} images, got {len(of)}")
        cosines = vectors @ torch.from_numpy(taught.support).T
        labels = taught.classes[taught.labels].tolist()
        if of is not None:
            places = {label: place for place, label in enumerate(taught.classes.tolist())}
            wanted = torch.tensor([places.get(label, -1) for label in of])[:, None]
            others = (torch.from_numpy(taught.labels) != wanted) & (wanted >= 0)
            cosines = cosines.masked_fill(others, -torch.inf)
        top = cosines.topk(min(k, len(taught.support)), -1)
        return [
            [Neighbour(p, taught.names[p], labels[p], s) for p, s in zip(*row, strict=True) if s > -np.inf]
            for row in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]

    def rejection_at(self, rate: float) -> Rejection:
        """What `reject=rate` would mean: the threshold, and how often it is wrong by the examples themselves."""
        taught = self._now()
        support, labels = torch.from_numpy(taught.support), torch.from_numpy(taught.labels)
        return self._rejection_at(rate, support, labels, len(taught.classes), taught.others)

    @property
    def classes_(self) -> NDArray[Any]:
        """(classes,) the labels, sorted."""
        return self._now().classes

    @property
    def support_(self) -> NDArray[np.float64]:
        """(n, D) the examples, as unit vectors."""
        return self._now().support

    @property
    def support_labels_(self) -> NDArray[np.int64]:
        """(n,) the class of each example, as an index into `classes_`."""
        return self._now().labels

    @property
    def support_names_(self) -> list[str]:
        """What the examples are called."""
        return self._now().names

    @property
    def prototypes_(self) -> NDArray[np.float64]:
        """(classes, D) the directions of the class means."""
        return self._now().prototypes

    @property
    def rejection_(self) -> Rejection | None:
        """The threshold, and how often it is wrong by the examples themselves; None without `reject` or `threshold`."""
        return self._now().rejection

    @property
    def temperature_(self) -> float:
        """What scores are divided by in `predict_proba`."""
        return self._now().temperature

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_taught")

    def _now(self) -> Taught:
        """What is taught at this moment."""
        check_is_fitted(self)
        return self._taught

    def asked(self, X: Any) -> Asked:
        """Embed images once, for several questions: `predict_proba`, `nearness` and `neighbours` take the result as X."""
        if isinstance(X, Asked):
            return X
        taught = self._now()
        vectors = self._vectors_of(X)
        if vectors.shape[1] != taught.support.shape[1]:
            raise ValueError(f"the examples have {taught.support.shape[1]} dimensions, got {vectors.shape[1]}")
        return Asked(taught, vectors)

    def _check_settings(self) -> None:
        if self.rule != "auto":
            check_rule(self.rule)
        for name in ("reject", "threshold"):
            value = getattr(self, name)
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number, type(None))):
                raise ValueError(f"{name} must be a number or None, got {getattr(self, name)!r}")
        if self.reject is not None and not 0 <= self.reject < 1:
            raise ValueError(f"reject must be from 0 to less than 1, got {self.reject!r}")
        if self.threshold is not None and not -2 <= self.threshold <= 2:
            raise ValueError(f"threshold is of the nearness, from -2 to 2, got {self.threshold!r}")

    def _learn(self, X: Any, y: Any, *, first: bool) -> FewShotClassifier:
        """What fails leaves everything as it was."""
        X = list(X) if isinstance(X, Iterator) else X
        scratch = copy.copy(self)  # scikit-learn notes on an estimator what its X looks like
        vectors = scratch._vectors_of(X, first=first)
        labels = column_or_1d(y, warn=True)
        if labels.dtype == object and all(isinstance(label, str) for label in labels):  # as pandas has texts
            y = labels = labels.astype(str)
        assert_all_finite(labels, input_name="y")
        _check_kinds(y, labels, None)
        if len(labels) != len(vectors):
            raise ValueError(f"there must be a label for each of {len(vectors)} examples, got {len(labels)}")
        with TEACHING:
            with warnings.catch_warnings():  # many classes with few examples are what this is for
                warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
                check_classification_targets(labels)
            before = None if first else self._now()
            _check_kinds(y, labels, None if before is None else before.classes)
            start = 0 if before is None else len(before.names)
            names = (
                [name_of(image, start + number) for number, image in enumerate(X)]
                if self._embeds(X)
                else [f"example {start + number}" for number in range(len(vectors))]
            )
            if before is not None:
                if before.support.shape[1] != vectors.shape[1]:
                    raise ValueError(f"the examples have {before.support.shape[1]} dimensions, got {vectors.shape[1]}")
                labels = np.concatenate([before.classes[before.labels], labels])
                vectors = torch.cat([torch.from_numpy(before.support), vectors])
                names = [*before.names, *names]
            taught = self._remembered(vectors.numpy(), labels, names)
            for noted in ("n_features_in_", "feature_names_in_"):
                if hasattr(scratch, noted):
                    setattr(self, noted, getattr(scratch, noted))
                elif hasattr(self, noted):
                    delattr(self, noted)
            self._taught = taught
        return self

    def _remembered(self, support: NDArray[Any], labels: NDArray[Any], names: Sequence[str]) -> Taught:
        classes, class_indices = np.unique(labels, return_inverse=True)
        vectors, indices = torch.from_numpy(support), torch.from_numpy(class_indices)
        means = prototypes(vectors, indices, len(classes)).numpy()
        rule = self._rule(len(classes))
        weights = LINEAR[rule](vectors, indices, len(classes)).numpy() if rule in LINEAR else None
        others = self._other_classes(vectors, indices, len(classes))
        rejection = self._rejection(vectors, indices, len(classes), others)
        temperature = 1.0 if rule == "logistic" else USUAL_TEMPERATURE
        taught = Taught(support, class_indices, classes, list(names), means, weights, rejection, temperature, others)
        return taught._replace(temperature=self._temperature(taught))

    def _other_classes(self, support: Tensor, labels: Tensor, way: int) -> Tensor | None:
        """That the network was trained on, where its weights tell."""
        embedder = self._embedder()
        if embedder is None or embedder.class_means is None or embedder.class_means.shape[1] != support.shape[1]:
            return None
        if self.threshold is not None and len(support) == way:  # one example each: a taught class may be among them
            return None
        return other_classes(embedder.class_means, support, labels, way)

    def _rejection(self, support: Tensor, labels: Tensor, way: int, others: Tensor | None) -> Rejection | None:
        if self.threshold is not None:
            return judged(self.threshold, *among_themselves(support, labels, way, others))
        return None if self.reject is None else self._rejection_at(self.reject, support, labels, way, others)

    def _rejection_at(self, rate: float, support: Tensor, labels: Tensor, way: int, others: Tensor | None) -> Rejection:
        rejection = calibrated(support, labels, way, rate, others)
        if rejection is not None:
            return rejection
        embedder = self._embedder()
        if embedder is None or embedder.one_shot is None:
            raise ValueError(
                "with one example of every class, what is none of these cannot be told from the examples: give two of a "
                "class, or a threshold"
            )
        return judged(embedder.one_shot.threshold(rate), *among_themselves(support, labels, way, others))

    def _temperature(self, taught: Taught) -> float:
        """That with the best log-likelihood of the examples, some of them, each left out of its class."""
        counts, rule = np.bincount(taught.labels), self._rule(len(taught.classes))
        tries = min(EXAMPLES_TO_TRY, FITTED // len(taught.labels)) if rule == "logistic" else EXAMPLES_TO_TRY
        if len(counts) < 2 or counts.max() < 2 or tries < FEWEST_TO_TRY:
            return taught.temperature
        indices = [p for p, label in enumerate(taught.labels) if counts[label] > 1]
        indices = indices[:: max(1, len(indices) // tries)]
        support, labels = torch.from_numpy(taught.support), torch.from_numpy(taught.labels)
        scores = []
        for index in indices:
            others = torch.arange(len(support)) != index
            query = support[None, index : index + 1]
            scores.append(scores_by(rule, support[None, others], labels[others], len(counts), query)[0])
        logits, right = torch.cat(scores), labels[indices]
        losses = [float(nn.functional.cross_entropy(logits / temperature, right)) for temperature in TEMPERATURES]
        return float(TEMPERATURES[int(np.argmin(losses))])

    def _scores(self, taught: Taught, vectors: Tensor) -> Tensor:
        """(n, D) -> (n, classes); the largest is the answer."""
        if taught.weights is not None:
            return vectors @ torch.from_numpy(taught.weights).T
        support, labels = torch.from_numpy(taught.support)[None], torch.from_numpy(taught.labels)
        at_once, way = max(1, SIMILARITIES_AT_ONCE // len(labels)), len(taught.classes)
        chunks = torch.split(vectors, at_once)
        return torch.cat([scores_by(self.rule, support, labels, way, chunk[None])[0] for chunk in chunks])

    def _rule(self, way: int) -> str:
        if self.rule != "auto":
            return self.rule
        return BEST if way > 1 else "prototype"

    def _vectors_of(self, X: Any, *, first: bool = False) -> Tensor:
        """(n, D) float64, of length 1."""
        if not first:
            check_is_fitted(self)
        embedder = self._embedder() if self._embeds(X) else None
        if embedder is not None:
            return torch.from_numpy(embedder(X)).double()
        return unit_vectors(torch.tensor(validate_data(self, X, reset=first, dtype=np.float64)))

    def _embeds(self, X: Any) -> bool:
        """Whether X are images. A matrix of floating-point numbers is none: those are embeddings."""
        if self.embedder is None:
            return False
        if getattr(X, "ndim", 0) == 2 and "float" in str(getattr(X, "dtype", "")):
            return False
        if isinstance(X, (str, bytes, Path, Image.Image)) or getattr(X, "ndim", 4) in (2, 3):
            raise ValueError(f"give a list of images, also of a single one, got {type(X).__name__}")
        return True

    def _embedder(self) -> Embedder | None:
        """Made once for a fitted classifier."""
        if self.embedder is None or isinstance(self.embedder, Embedder):
            return self.embedder
        if getattr(self, "_made", (None,))[0] != self.embedder:
            self._made = (self.embedder, Embedder(self.embedder))
        return self._made[1]


def _nearness(taught: Taught, vectors: Tensor) -> Tensor:
    return nearness(vectors, torch.from_numpy(taught.prototypes), taught.others)


def _check_kinds(y: Any, labels: NDArray[Any], known: NDArray[Any] | None) -> None:
    """Texts and numbers do not go together: one would become the other."""
    is_text = labels.dtype.kind in "US"
    mixed = is_text and not isinstance(y, np.ndarray) and any(not isinstance(label, (str, bytes)) for label in y)
    if mixed or (labels.dtype == object and any(isinstance(label, str) for label in labels)):
        raise ValueError("labels must be all texts or all numbers, got both")
    if known is not None and is_text != (known.dtype.kind in "US"):
        raise ValueError(
            f"labels have been {known.dtype} so far, got {labels.dtype}: they must be all texts or all numbers"
        )
