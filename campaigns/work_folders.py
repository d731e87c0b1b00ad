"""Folders that are there whole or not at all: prepared data, saved classifiers, networks that are passed on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .workloads import FromNothing, Tell, beside, command, digest, errors_as_seen


class Preparing(FromNothing):
    """`rankshot data prepare` of a folder of images."""

    name, room = "data prepare", 60_000

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        command("data", "prepare", beside(place, "pictures"), "--size", "20", "--root", str(place))
        tell("prepared")

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        problems = []
        if "prepared" in acknowledged and len(list(place.glob("*/manifest.json"))) != 1:
            problems.append("lost")
        self.act(place, (), lambda _: None)
        command("data", "verify", "--root", str(place))
        command("data", "list", "--root", str(place))
        one, other = (digest(next(folder.glob("[!.]*/images.bin"))) for folder in (place, reference))
        if one != other:
            problems.append("other pixels than undisturbed")
        return problems


class Saving(FromNothing):
    """`FewShotClassifier.save_pretrained`, of a classifier that was opened from a folder, into `count` new folders."""

    name, room = "classifier save", 120_000

    def __init__(self, count: int) -> None:
        self.count = count

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        from rankshot.gallery import FewShotClassifier

        with errors_as_seen():
            place.mkdir(exist_ok=True)
            classifier = FewShotClassifier.from_pretrained(place.parent / "classifier")
            for number in range(self.count):
                if f"saved {number}" not in before:
                    tell(f"begins {number}")
                    if not (place / str(number) / "classifier.json").exists():
                        classifier.save_pretrained(place / str(number))
                    tell(f"saved {number}")

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        from rankshot.gallery import FewShotClassifier

        first = FewShotClassifier.from_pretrained(place.parent / "classifier")
        asked = np.random.default_rng(0).normal(size=(9, first.support_.shape[1]))
        expected, problems = first.predict_proba(asked).tobytes(), []
        for number in range(self.count):
            folder = place / str(number)
            if f"saved {number}" not in acknowledged and not (folder / "classifier.json").exists():
                first.save_pretrained(folder)  # again, to the same place
            if FewShotClassifier.from_pretrained(folder).predict_proba(asked).tobytes() != expected:
                problems.append(f"{folder.name} answers otherwise")
        return problems


class Exporting(FromNothing):
    """`rankshot export` into a new folder."""

    name, room = "export", 60_000

    def act(self, place: Path, before: Sequence[str], tell: Tell) -> None:
        if not (place / "config.json").exists():
            command("export", beside(place, "run"), str(place))
        tell("exported")

    def check(self, place: Path, acknowledged: Sequence[str], reference: Path) -> list[str]:
        if "exported" in acknowledged and not (place / "config.json").exists():
            return ["lost"]
        self.act(place, (), lambda _: None)
        command(
            "classify", beside(place, "pictures/c1/0.png"), "--support", beside(place, "pictures"), "--model", str(place)
        )
        same = all(digest(place / file.name) == digest(file) for file in reference.iterdir())
        return [] if same else ["other files than undisturbed"]
