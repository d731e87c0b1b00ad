"""What was taught, as a zip to take along; and such a zip, taken in."""

from __future__ import annotations

import io
import logging
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np

from rankshot.data.trees import open_tree
from rankshot.files import write_whole
from rankshot.gallery.classifier import FewShotClassifier
from rankshot.gallery.embedder import Embedder
from rankshot.gallery.saved_classifier import CLASSIFIER, EXAMPLES, NETWORK
from rankshot.models.folder_files import CARD, CLASS_MEANS, CLASSES, CONFIG, EVALUATION, ONE_SHOT, WEIGHTS

from .recogniser import NOTHING
from .together import Together
from .workspace import Refused, Workspace

log = logging.getLogger(__name__)
OF_NETWORK = (CARD, CLASS_MEANS, CLASSES, CONFIG, EVALUATION, ONE_SHOT, WEIGHTS)
FILES = {CLASSIFIER, EXAMPLES, *(f"{NETWORK}/{name}" for name in OF_NETWORK)}  # that the folder of a classifier may hold


def zipped(workspace: Workspace, together: Together) -> bytes:
    """What is taught, with classes and examples by their names, as a zip of the classifier's folder."""
    classes, examples = workspace.taught()
    if not examples:
        raise Refused(NOTHING)
    names = {each.id: each.name for each in classes}
    classifier = FewShotClassifier(together.embedder)
    classifier.fit(np.stack([each.vector for each in examples]), [names[each.class_id] for each in examples])
    classifier.named([each.name for each in examples])
    with tempfile.TemporaryDirectory(prefix="rankshot-serve-") as folder:
        saved = classifier.save_pretrained(Path(folder) / "classifier")
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(saved.rglob("*")):
                if path.is_file():
                    archive.write(path, PurePosixPath("classifier", *path.relative_to(saved).parts))
    return content.getvalue()


def take_in(workspace: Workspace, together: Together, classifier: FewShotClassifier) -> None:
    """What was taught elsewhere, by the same network."""
    seen_by = classifier.embedder
    if not isinstance(seen_by, Embedder) or seen_by.fingerprint != together.embedder.fingerprint:
        raise Refused("the classifier was taught with another network than this server sees by")
    labels = [str(classifier.classes_[label]) for label in classifier.support_labels_]
    workspace.take_in(labels, classifier.support_names_, classifier.support_)


def classifier_in(content: bytes) -> FewShotClassifier:
    """Out of a zip that anybody may have made: it is read as a zip of pictures is, and holds a classifier or is refused."""
    with tempfile.TemporaryDirectory(prefix="rankshot-serve-") as folder:
        archive, target = Path(folder) / "given.zip", Path(folder) / "classifier"
        write_whole(archive, content)
        (target / NETWORK).mkdir(parents=True)
        try:
            tree = open_tree(archive)
            names = {name: "/".join(PurePosixPath(name).parts[1:]) for name in tree.names()}
            if unknown := set(names.values()) - FILES:
                raise ValueError(f"{min(unknown)} is no part of a classifier")
            for name, each in tree.read(names):
                if isinstance(each, OSError):
                    raise each
                write_whole(target / names[name], each)
            return FewShotClassifier.from_pretrained(target)
        except (ValueError, OSError) as error:
            log.info("a classifier was refused: %s", error)
            raise Refused("this is no classifier that was downloaded from rankshot, or it is damaged") from None
