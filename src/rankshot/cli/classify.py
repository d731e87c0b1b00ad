"""`rankshot classify`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from rankshot.files import check_new_folder
from rankshot.gallery import Embedder, Failure, FewShotClassifier
from rankshot.gallery.answers import Answered, Tally
from rankshot.gallery.image_files import examples, image_files
from rankshot.gallery.saved_classifier import is_saved
from rankshot.report.answers_page import write_answers_page
from rankshot.terminal import say, tallying

from .messages import complain, report_failures, strongest_told
from .output import answers_to
from .parsing import NO_DEFAULT, Device, Files, parsed, typed

AT_ONCE = 1024
OF_A_CLASSIFIER = ("model", "rule", "reject", "threshold", "unknown")
COLUMNS = ("image", "label", "probability", "nearness", "example")


@dataclass(frozen=True)
class Options:
    """Tell the class of images from a few examples of each, with nothing to train.

    Prints a line for every image: its class, how probable it is among these classes (nothing, where it is none of them),
    how near it is to the nearest one (its cosine with the mean of that class; less where it is like other classes that the
    network was trained on), and the example of its class that it is most like; in the order of the images, and of their
    names within folders. Where most of the images lie in folders named as the classes, it tells at the end, on standard
    error, how often it was right; a folder of the name of --unknown counts too. What cannot be read is told, and the rest
    goes on; the exit code is 1 then.
    """

    images: Annotated[tuple[Path, ...], tyro.conf.Positional, NO_DEFAULT]
    """Images, and folders of them."""
    support: Path
    """Folder with a folder of examples for each class; as many as there are. Or one that a classifier was saved in, with
    its network, rule and threshold."""
    model: str | None = None
    """Network: a run folder, or weights by name, such as efficientnet-lite0 or conv4-omniglot (for handwriting), or hf:NAME
    for a model of Hugging Face. None: the strongest for photographs that is installed."""
    load: Files = ()
    device: Device = "auto"
    rule: str = "auto"
    """How to decide: logistic (regression on the examples), prototype (the nearest class mean), ap (the paper's: the
    class whose examples are ranked best), or nearest (the nearest example). auto: the best that is known, logistic."""
    reject: float | None = None
    """Answer `unknown` where an image is none of these: the share of known images that may be turned away, such as 0.05."""
    threshold: float | None = None
    """Answer `unknown` below this nearness, instead of looking for a threshold by --reject."""
    unknown: str = "none of these"
    """What to answer then."""
    save: Path | None = None
    """New folder to save the taught classifier in, with its network: next time, --support FOLDER opens it."""
    report: Path | None = None
    """Page to write, NAME.html: for images in folders named as the classes, which of them are mixed up, and the worst
    mistakes with what the network looked at."""
    format: str = "csv"
    """Of the lines: csv, or json (an object a line)."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File to write. None: print."""


def main(arguments: Sequence[str]) -> int:
    options = parsed(Options, arguments, "classify")
    if options.format not in ("csv", "json"):
        raise ValueError(f"unknown format {options.format!r}: there is 'csv', 'json'")
    if not options.images:
        raise ValueError("give images, or folders of them")
    for place in options.images:
        if not place.exists():
            raise FileNotFoundError(f"there is no {place}")
    if options.save is not None:
        check_savable(options.save, options.support)
    if options.report is not None:
        check_page(options.report)
    failures: list[Failure] = []
    if is_saved(options.support):
        for name in OF_A_CLASSIFIER:
            if f"--{name}" in typed(arguments):
                raise ValueError(
                    f"the classifier in {options.support} keeps the {name} that it was taught with: leave out "
                    f"--{name}, or teach again from the examples"
                )
        classifier = FewShotClassifier.from_pretrained(options.support, device=options.device)
        tell_rejection(classifier)
        embedder = classifier.embedder
        if not isinstance(embedder, Embedder):
            raise ValueError(f"the classifier in {options.support} was taught with vectors and has no network for images")
    else:
        embedder = Embedder(options.model or strongest_told(), device=options.device)
        classifier, failures = taught(options, embedder)
    unknown = word_for_unknown(classifier)
    tally = Tally(map(str, classifier.classes_.tolist()), unknown, classifier.support_names_)
    labelled = {*map(str, classifier.classes_.tolist()), *([] if unknown is None else [unknown])}
    answered: list[Answered] = []
    out_of_the_way = options.output is not None or not sys.stdout.isatty()
    with answers_to(options.output) as to, tallying("images", beside_output=out_of_the_way) as tell:
        if options.format == "csv":
            to.csv([COLUMNS])
        files, done = image_files(options.images), 0
        while chunk := list(islice(files, AT_ONCE)):
            for part in embedder.each(chunk):
                failures += report_failures(part.failures)
                done += len(part.places)
                tell(done)
                rows = list(answers(classifier, [str(chunk[place]) for place in part.places], part.vectors))
                for row in rows:
                    tally.add(row["image"], row["label"])
                    truth = Path(row["image"]).parent.name
                    if options.report is not None and truth in labelled:
                        answered.append(Answered(row["image"], truth, row["label"], row["probability"], row["example"]))
                if options.format == "csv":
                    to.csv(row.values() for row in rows)
                else:
                    to.json(rows)
    if not done and not failures:
        complain(f"there are no images in {', '.join(map(str, options.images))}")
    if lines := tally.lines():
        say(*lines, stream=sys.stderr)
    if options.report is not None:
        tell_in_pictures(options.report, answered, classifier, embedder)
    if options.save is not None:  # last: whatever goes wrong before, the same command can be given again
        classifier.save_pretrained(options.save)
        complain(f"the classifier is saved: next time, --support {options.save}")
    return 1 if failures else 0


def tell_in_pictures(page: Path, answered: Sequence[Answered], classifier: FewShotClassifier, embedder: Embedder) -> None:
    if not answered:
        complain(f"no page is written: none of the images lies in a folder named as a class ({page})")
        return
    write_answers_page(page, answered, classifier, embedder)
    complain(f"which classes are mixed up, in pictures: {page}")


def check_savable(folder: Path, support: Path) -> None:
    """Before anything is embedded."""
    if is_saved(support):
        raise ValueError(f"the classifier in {support} is saved already: leave out --save")
    check_new_folder(folder)


def check_page(page: Path) -> None:
    """Before anything is embedded."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--report writes a page, NAME.html, got {page}")
    if not page.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {page.parent} for {page}")


def word_for_unknown(classifier: FewShotClassifier) -> str | None:
    """What it answers for none of these; None: it never does."""
    if classifier.rejection_ is None:
        return None
    return Options.unknown if classifier.unknown is None else str(classifier.unknown)


def taught(options: Options, embedder: Embedder) -> tuple[FewShotClassifier, list[Failure]]:
    """By the support folder; what cannot be read there is told too."""
    paths = [(path, name) for name, found in examples(options.support).items() for path in found]
    parts = list(embedder.each(path for path, _ in paths))
    places = [place for part in parts for place in part.places]
    failures = report_failures([failure for part in parts for failure in part.failures])
    labels = [paths[place][1] for place in places]
    if missing := {name for _, name in paths} - set(labels):
        raise ValueError(f"of class {sorted(missing)[0]!r} in {options.support} no image can be read")
    classifier = FewShotClassifier(
        embedder, rule=options.rule, reject=options.reject, threshold=options.threshold, unknown=options.unknown
    )
    classifier.fit(np.concatenate([part.vectors for part in parts]), labels)
    classifier.named([str(paths[place][0]) for place in places])
    tell_rejection(classifier)
    return classifier, failures


def tell_rejection(classifier: FewShotClassifier) -> None:
    """Where the line is, and how often it is wrong, as far as the examples can tell."""
    if classifier.rejection_ is None:
        return
    line = classifier.rejection_
    wrong = [f"{100 * line.false_rejections:.1f} % of the examples would be rejected"] * (line.false_rejections >= 0)
    alike = "would pass for another of your classes if their own were left out; what looks like them passes more often"
    wrong += [f"{100 * line.false_acceptances:.1f} % {alike}"] * (line.false_acceptances >= 0)
    by_examples = f"; {', and '.join(wrong)}" if wrong else ""
    complain(f"none of these below a nearness of {line.threshold:.3f}{by_examples}")


def answers(classifier: FewShotClassifier, names: Sequence[str], vectors: Any) -> Iterator[dict[str, Any]]:
    if not len(names):
        return
    labels, probabilities = classifier.predict(vectors), classifier.predict_proba(vectors).max(1)
    near, nearest = classifier.nearness(vectors), classifier.neighbours(vectors, 1, of=labels.tolist())
    classes = set(classifier.classes_.tolist())
    for name, label, probability, nearness, (example,) in zip(names, labels, probabilities, near, nearest, strict=True):
        answer = Options.unknown if label is None else str(label)  # of a classifier that was saved without a word for it
        sure = round(float(probability), 4) if label in classes else None  # none of these has no probability
        values = (name, answer, sure, round(float(nearness), 4), example.name)
        yield dict(zip(COLUMNS, values, strict=True))
