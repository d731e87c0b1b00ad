"""What a classifier made of images in folders named as its classes, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rankshot.files import write_whole
from rankshot.gallery.answers import Answered
from rankshot.gallery.classifier import FewShotClassifier
from rankshot.gallery.embedder import Embedder

from .confusions import confusions
from .html_page import html_page
from .mistakes import mistakes, pixels_seen
from .picture import data_uri


def write_answers_page(
    path: Path,
    answered: Sequence[Answered],
    classifier: FewShotClassifier,
    embedder: Embedder,
) -> None:
    """How often it was right, which classes are mixed up, and the worst mistakes with where the network looked."""

    @cache
    def picture(name: str) -> str | None:
        pixels = pixels_seen(name, embedder) if name else None
        return None if pixels is None else data_uri(pixels)

    right = sum(each.truth == each.answer for each in answered)
    labels = classifier.classes_[classifier.support_labels_].tolist()
    examples = {str(label): name for label, name in zip(reversed(labels), reversed(classifier.support_names_), strict=True)}
    taught = f"{len(labels)} examples of {len(classifier.classes_)} classes"
    share = f"{100 * right / len(answered):.1f} % right: {right} of {len(answered)} images" if answered else "no images"
    write_whole(
        path,
        html_page(
            "Answers of the classifier",
            f"{share}, by {embedder.name} with {taught}. The folder of an image tells its class.",
            {
                "Confusion matrix": confusions(answered, examples, picture),
                "The worst mistakes": mistakes(answered, embedder),
            },
        ),
    )
