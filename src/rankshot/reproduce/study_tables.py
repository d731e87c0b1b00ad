"""Tables of the studies, from the json files of runs and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from .gap import DATA, VARIANTS
from .job import NORMS
from .published import ALPHA_ONE, COLUMNS, DATA_NAMES, PUBLISHED, TITLES
from .retrieval_metrics import EPISODES
from .studies import DECAYS, FINE_IN_WORDS, LONGER, METRICS, OBJECTIVES, STUDIED, decay_folder, study_folder
from .system_settings import settings_table
from .tables import NORM, Record, markdown, means, seeds_in, seeds_told

TASKS = COLUMNS[DATA]
UNCHANGED = ("as-it-is", NORM)  # variant and norm
CHOSEN_BY = ("1-shot 5-way", "5-shot 5-way", "retrieval 5-way", "retrieval 16-way")  # validation tasks

WITH_INTERVALS = "With 95 % intervals over seeds and episodes; in brackets, the standard deviation over seeds."


def objectives_table(results: Path, name: str) -> str | None:
    """What is optimised, and what the same rankings are worth by every metric."""
    rows = [[label, *(f"{figure:.2f}" for figure in row)] for label, row in objectives_measured(results, name).items()]
    return markdown([f"{DATA_NAMES[name]}, objective", *METRICS.values()], rows) if rows else None


def objectives_measured(results: Path, name: str) -> dict[str, list[float]]:
    """Objective, in words -> by every metric its mean over seeds in percent, of the seeds that a row of means has."""
    found = {}
    for variant, (words, _) in OBJECTIVES.items():
        if runs := seeds_in(results, study_folder(name, "objectives", variant), NORM):
            figures = [100 * mean(_judged(record, metric) for record in runs) for metric in METRICS]
            found[f"{words} ({seeds_told(runs)})"] = figures
    return found


def _judged(record: Record, metric: str) -> float:
    try:
        value = float(record["retrieval_metrics"][metric]["mean"])
    except (KeyError, TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the record of {record.get('name', 'a run')} has no figure of its retrieval by {metric!r}")
    return value


def signs_table(results: Path, name: str) -> str | None:
    return beside_the_unchanged(results, name, "signs", "update")


def batches_table(results: Path, name: str) -> str | None:
    return beside_the_unchanged(results, name, "batches", "128 images of")


def beside_the_unchanged(results: Path, name: str, study: str, first: str) -> str | None:
    """Variants of the paper's recipe for mAP-DLM, by running statistics; the first of them changes nothing."""
    studied = STUDIED[name]
    rows = [
        Row(words, study_folder(name, study, variant), study_folder(name, study, studied.base_of(study, variant)))
        for variant, (words, _) in studied.variants(study).items()
    ]
    body = variant_rows(results, rows, COLUMNS[name])
    return markdown([f"{DATA_NAMES[name]}, {first}", *COLUMNS[name]], body) if len(body) > 1 else None


def gap_table(results: Path) -> str | None:
    """The paper's figures, and ours with the authors' settings; mAP-DLM's are compared with mAP-DLM's."""
    published = {
        "mAP-SSVM, alpha 1, as published": ALPHA_ONE["map-ssvm"],
        "mAP-DLM, alpha 10, as published": PUBLISHED[DATA]["map-dlm"],
    }
    above = [[label, *("–" if each is None else f"{each:.2f}" for each in row)] for label, row in published.items()]
    told = {UNCHANGED: ": the runs of the table of alpha"}
    rows = [
        Row(words, gap_folder(name, norm), gap_folder(base, norm), norm, f", {norm} statistics{told.get((name, norm), '')}")
        for name, (words, _) in VARIANTS.items()
        for norm in NORMS
        for base in ["dlm-as-it-is" if name.startswith("dlm-") else "as-it-is"]
    ]
    body = variant_rows(results, rows, TASKS)
    return markdown(["what is changed", *TASKS], [*above, *body]) if body else None


def gap_folder(name: str, norm: str) -> str:
    """What changes nothing was run once more for the table of alpha, with a seed more, but asked by running statistics
    alone."""
    return f"{DATA}/alpha/map-ssvm-1" if (name, norm) == UNCHANGED else f"{DATA}/gap/{name}"


class Row(NamedTuple):
    """Of a table of variants.

    words   what is changed
    folder  of its seeds
    base    of those that it is compared with; where it is the same, with none
    more    to say after the number of seeds
    """

    words: str
    folder: str
    base: str
    norm: str = NORM
    more: str = ""


def variant_rows(results: Path, rows: Iterable[Row], tasks: Sequence[str]) -> list[list[str]]:
    """Of every row that there is: means over its seeds, and the mean difference to what it is compared with."""
    body = []
    for row in rows:
        if runs := seeds_in(results, row.folder, row.norm):
            base = seeds_in(results, row.base, row.norm) if row.base != row.folder else []
            apart = differences_by_seed(runs, base, row.norm, tasks)
            cells = [f"{figure:.2f}" for figure in means(runs, row.norm, tasks)]
            if apart is not None:
                cells = [f"{cell} ({each:+.2f})" for cell, each in zip(cells, apart, strict=True)]
            body.append([f"{row.words} ({seeds_told(runs)}){row.more}", *cells])
    return body


def differences_by_seed(
    runs: Sequence[Record], base: Sequence[Record], norm: str, tasks: Sequence[str]
) -> list[float] | None:
    """In points, over the seeds that both have, for a seed is worth up to a point; None: they share none."""
    ours, theirs = ({record["config"]["seed"]: record for record in some} for some in (runs, base))
    shared = ours.keys() & theirs.keys()
    if not shared:
        return None
    of_both = (means([some[seed] for seed in shared], norm, tasks) for some in (ours, theirs))
    return [one - other for one, other in zip(*of_both, strict=True)]


def longer_table(results: Path) -> str | None:
    """Our earlier recipe, and what the last trials would have had: on the validation classes, and on the test classes."""
    body = []
    for method in LONGER:
        for folder, words in (
            (decay_folder(method, "before"), "our earlier recipe"),
            (f"{DATA}/longer/{method}", "the best of these trials"),
        ):
            if runs := seeds_in(results, folder, NORM):
                at_last = 100 * mean(list(record["validation"][NORM].values())[-1]["mean"] for record in runs)
                figures = (f"{figure:.2f}" for figure in means(runs, NORM, TASKS))
                body.append([f"{TITLES[method]}, {words} ({seeds_told(runs)})", f"{at_last:.2f}", *figures])
    return markdown([DATA_NAMES[DATA], "validation: retrieval 16-way", *TASKS], body) if body else None


def decay_table(results: Path) -> str | None:
    """A centred head and weight decay: the mean of the validation tasks that chose, and the test classes."""
    body = []
    for method, variants in DECAYS.items():
        for name, (words, _) in variants.items():
            folder = decay_folder(method, name)
            if runs := seeds_in(results, folder, NORM):
                chosen = 100 * mean(record["validation"][NORM][task]["mean"] for record in runs for task in CHOSEN_BY)
                test = means(runs, NORM, TASKS)
                by_mean = 100 * mean(record["test_by_class_mean"]["5-shot 5-way"]["mean"] for record in runs)
                ours = ": our recipe" if "/best/" in folder else ""
                figures = (f"{each:.2f}" for each in (chosen, test[0], by_mean, *test[2:]))
                body.append([f"{TITLES[method]}, {words} ({seeds_told(runs)}){ours}", *figures])
    tasks = [TASKS[0], f"{TASKS[1]}, class mean", *TASKS[2:]]
    return markdown([DATA_NAMES[DATA], "validation", *tasks], body) if body else None


Section = tuple[str, str, Callable[[Path], str | None]]  # its title, what its table shows, and the table


def sections(name: str) -> list[Section]:
    """Of a data set."""
    short = f" Runs of {updates:,} updates." if (updates := STUDIED[name].changes.get("updates")) else ""
    common: list[Section] = [
        (
            "Objectives and metrics",
            "mAP-DLM trained for each metric; the rankings of 20-way retrieval on test classes, judged by every metric: "
            f"means in % over seeds and {EPISODES:,} episodes.{short}",
            lambda results: objectives_table(results, name),
        ),
        (
            "Signs of the update",
            f"mAP-DLM: means in % over seeds. In brackets: the difference to the positive update of the same seeds; rows "
            f"with {FINE_IN_WORDS} are compared with the one that has these too.{short}",
            lambda results: signs_table(results, name),
        ),
        (
            "Classes of a batch",
            f"mAP-DLM: means in % over seeds. In brackets: the difference to the paper's batch with the same seeds; rows "
            f"with {FINE_IN_WORDS} are compared with the one that has these too.{short}",
            lambda results: batches_table(results, name),
        ),
    ]
    maml: Section = (
        "MAML without something that its authors' code has",
        f"Accuracy in %. {WITH_INTERVALS}",
        lambda results: settings_table("maml", results, name),
    )
    prototypical: Section = (
        "Prototypical Networks with other settings",
        f"Accuracy in %. {WITH_INTERVALS}",
        lambda results: settings_table("prototypical", results, name),
    )
    of_systems = (maml, prototypical)
    return [FIRST, *common, *of_systems, *LAST] if name == DATA else [*common, *of_systems]


FIRST: Section = (
    "The paper's recipe with the authors' settings",
    "mAP-SSVM with alpha 1, unless the row says otherwise. Means in % over seeds, batch norm with running statistics "
    "and with those of each episode. In brackets: the difference to the runs of the same seeds in which nothing is "
    "changed.",
    gap_table,
)
LAST: tuple[Section, ...] = (
    (
        "Longer, with crops",
        "Means in % over seeds and 10,000 episodes, with mirror images.",
        longer_table,
    ),
    (
        "A centred head and weight decay",
        "Means in % over seeds and 10,000 episodes, with mirror images. Validation: the mean of 5-way classification "
        "with one and with five shots, and of 5-way and 16-way retrieval, on 3,000 episodes of the validation classes.",
        decay_table,
    ),
)


def page(results: Path) -> str:
    """All studies that there are json files of; nothing where there are none."""
    parts = []
    for name in STUDIED:
        tables = [(title, what, table_of(results)) for title, what, table_of in sections(name)]
        there = [part for title, what, table in tables if table for part in (f"### {title}", what, table)]
        parts += [f"## Studies on {DATA_NAMES[name]}", *there] if there else []
    return "\n\n".join(parts) + "\n" if parts else ""
