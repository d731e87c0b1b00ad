"""The classifier of what is taught at the moment: answers, what they cost, and which examples it would get wrong itself."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankshot.fewshot.rules import BEST, class_sums, prototypes, scores_by
from rankshot.gallery.classifier import FewShotClassifier, Neighbour
from rankshot.gallery.rejection import Rejection

from .together import Together
from .workspace import Example, Refused, Vector, Workspace

FITTED = 4000  # examples in all the classifiers that are fitted to leave each one out; more: by class means
NOTHING = "nothing is taught yet: give an example of a class first"
DECIDING = 5  # examples that are shown with an answer


class Answer(NamedTuple):
    """What a picture is.

    class_id       of the likeliest class; None: none of these
    probabilities  of every class, by its id, the likeliest first
    neighbours     the examples nearest to it, of the class that was answered (of any, where it is none of these)
    nearness       to the classes, which the threshold is about
    """

    class_id: str | None
    probabilities: list[tuple[str, float]]
    neighbours: list[Neighbour]
    nearness: float


class Review(NamedTuple):
    """What the classifier would say of its own examples, each left out once.

    mistakes  (example, its class, what it would be taken for)
    mixed_up  (class, what for, how many times)
    """

    revision: int
    mistakes: list[tuple[str, str, str]]
    mixed_up: list[tuple[str, str, int]]


class Recogniser:
    """Answers from what the workspace holds; learned anew after a change, when it is first asked."""

    def __init__(self, workspace: Workspace, together: Together) -> None:
        self._workspace, self._together = workspace, together
        self._turn, self._reviewing = threading.Lock(), threading.Lock()
        self._learned: tuple[int, FewShotClassifier | None, list[Example]] = (-1, None, [])
        self._reviewed = Review(-1, [], [])

    def classifier(self) -> FewShotClassifier:
        """Of this moment; its classes are ids, and its examples are called by theirs."""
        _, classifier, _ = self._now()
        if classifier is None:
            raise Refused(NOTHING)
        return classifier

    def _now(self) -> tuple[int, FewShotClassifier | None, list[Example]]:
        with self._turn:
            if self._workspace.revision != self._learned[0]:
                revision, examples = self._workspace.examples()
                classifier = None
                if examples:
                    classifier = FewShotClassifier(self._together.embedder)
                    classifier.fit(np.stack([each.vector for each in examples]), [each.class_id for each in examples])
                    classifier.named([each.id for each in examples])
                self._learned = (revision, classifier, examples)
            return self._learned

    def rejection(self, rate: float | None) -> Rejection | None:
        """The threshold of none of these at this rate, and what it costs by the examples; None where nobody can tell."""
        return _rejection(self.classifier(), rate)

    def answers(self, vectors: Sequence[Vector], rate: float | None) -> tuple[list[Answer], Rejection | None]:
        """Of each, by one classifier; and what the threshold was."""
        classifier = self.classifier()
        rejection = _rejection(classifier, rate)
        if not vectors:
            return [], rejection
        asked = classifier.asked(np.stack(vectors))
        shares, near = classifier.predict_proba(asked), classifier.nearness(asked)
        ids: NDArray[np.str_] = classifier.classes_
        best = [str(ids[place]) for place in shares.argmax(-1)]
        given = [None if rejection and near[row] < rejection.threshold else best[row] for row in range(len(best))]
        neighbours = classifier.neighbours(asked, DECIDING, of=given)
        return [
            Answer(given[row], _sorted(ids, shares[row]), neighbours[row], float(near[row])) for row in range(len(given))
        ], rejection

    def review(self) -> Review:
        """Found out once for every revision, for all who ask."""
        with self._reviewing:
            revision, classifier, examples = self._now()
            if revision != self._reviewed.revision:
                taken_for = left_out(classifier) if classifier is not None else []
                wrong = [
                    (each.id, each.class_id, str(other))
                    for each, other in zip(examples, taken_for, strict=True)
                    if other not in (None, each.class_id)
                ]
                counted = Counter((right, other) for _, right, other in wrong)
                mixed_up = [(right, other, count) for (right, other), count in counted.most_common()]
                self._reviewed = Review(revision, wrong, mixed_up)
            return self._reviewed


def _rejection(classifier: FewShotClassifier, rate: float | None) -> Rejection | None:
    try:
        return None if rate is None else classifier.rejection_at(rate)
    except ValueError:  # one example of every class, and weights that do not know
        return None


def left_out(classifier: FewShotClassifier) -> list[str | None]:
    """What every example would be taken for, were it not there; None of one that is alone in its class."""
    support, labels = torch.from_numpy(classifier.support_), torch.from_numpy(classifier.support_labels_)
    way, counts = len(classifier.classes_), torch.bincount(labels)
    if way < 2:
        return [None] * len(labels)
    one_by_one = len(labels) ** 2 <= FITTED
    means = prototypes(support, labels, way)
    sums = class_sums(support, labels, way)
    found: list[str | None] = []
    for place, label in enumerate(labels.tolist()):
        if counts[label] < 2:
            found.append(None)
            continue
        if one_by_one:
            others = torch.arange(len(labels)) != place
            scores = scores_by(BEST, support[None, others], labels[others], way, support[None, place : place + 1])[0, 0]
        else:  # only the mean of its own class is another without it
            scores = means @ support[place]
            without = nn.functional.normalize(sums[label] - support[place], dim=-1)
            scores[label] = without @ support[place]
        found.append(str(classifier.classes_[int(scores.argmax())]))
    return found


def _sorted(ids: NDArray[np.str_], shares: NDArray[np.float64]) -> list[tuple[str, float]]:
    return [(str(ids[place]), float(shares[place])) for place in np.argsort(-shares, kind="stable")]
