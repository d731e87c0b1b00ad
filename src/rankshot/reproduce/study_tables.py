"""Tables of the studies, from the json files of runs and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean

from .gap import DATA, VARIANTS
from .job import NORMS
from .published import ALPHA_ONE, COLUMNS, NAMES, PUBLISHED
from .studies import DECAYS, FINE_IN_WORDS, LONGER, METRICS, OBJECTIVES, STUDIED, decay_folder, study_folder
from .system_settings import Variants, settings_table
from .tables import NORM, Record, markdown, means, records, seeds_in, seeds_told

TASKS = COLUMNS[DATA]
CHOSEN_BY = ("1-shot 5-way", "5-shot 5-way", "retrieval 5-way", "retrieval 16-way")  # validation tasks

WITH_INTERVALS = "With 95 % intervals over seeds and episodes; in brackets, the standard deviation over seeds."


def objectives_table(results: Path, name: str) -> str | None:
    """What is optimised, and what the same rankings are worth by every metric."""
    rows = [[label, *(f"{figure:.2f}" for figure in row)] for label, row in objectives_measured(results, name).items()]
    return markdown([f"{NAMES[name]}, objective", *METRICS.values()], rows) if rows else None


def objectives_measured(results: Path, name: str) -> dict[str, list[float]]:
    """Objective, in words -> by every metric its mean over seeds in percent, of what there is."""
    found = {}
    for variant, (words, _) in OBJECTIVES.items():
        if runs := records(results, f"{study_folder(name, 'objectives', variant)}/*"):
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
    variants = studied.variants(study)
    folders = {variant: study_folder(name, study, variant) for variant in variants}
    rows = variant_rows(results, folders, variants, lambda variant: studied.base_of(study, variant), (NORM,), COLUMNS[name])
    return markdown([f"{NAMES[name]}, {first}", *COLUMNS[name]], rows) if len(rows) > 1 else None


def gap_table(results: Path) -> str | None:
    """The paper's figures, and ours with the authors' settings; mAP-DLM's are compared with mAP-DLM's."""
    published = {
        "mAP-SSVM, alpha 1, as published": ALPHA_ONE["map-ssvm"],
        "mAP-DLM, alpha 10, as published": PUBLISHED[DATA]["map-dlm"],
    }
    above = [[label, *("–" if each is None else f"{each:.2f}" for each in row)] for label, row in published.items()]
    folders = {name: f"{DATA}/gap/{name}" for name in VARIANTS}
    rows = variant_rows(
        results, folders, VARIANTS, lambda name: "dlm-as-it-is" if name.startswith("dlm-") else "as-it-is", NORMS, TASKS
    )
    return markdown(["what is changed", *TASKS], [*above, *rows]) if rows else None


def variant_rows(
    results: Path,
    folders: Mapping[str, str],
    variants: Variants,
    base_of: Callable[[str], str],
    norms: Sequence[str],
    tasks: Sequence[str],
) -> list[list[str]]:
    """A row for every variant that is there and every norm: means over its seeds, and the difference to the variant that it
    is compared with, which is that of its name by `base_of`."""
    rows = []
    for name, (words, _) in variants.items():
        for norm in norms:
            if runs := seeds_in(results, folders[name], norm):
                base = seeds_in(results, folders[base_of(name)], norm) if name != base_of(name) else []
                against = means(base, norm, tasks) if base else None
                by = f", {norm} statistics" if len(norms) > 1 else ""
                rows.append([f"{words} ({seeds_told(runs)}){by}", *_cells(means(runs, norm, tasks), against)])
    return rows


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
                body.append([f"{NAMES[method]}, {words} ({seeds_told(runs)})", f"{at_last:.2f}", *figures])
    return markdown([NAMES[DATA], "validation: retrieval 16-way", *TASKS], body) if body else None


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
                body.append([f"{NAMES[method]}, {words} ({seeds_told(runs)}){ours}", *figures])
    tasks = [TASKS[0], f"{TASKS[1]}, class mean", *TASKS[2:]]
    return markdown([NAMES[DATA], "validation", *tasks], body) if body else None


def _cells(figures: Sequence[float], against: Sequence[float] | None) -> list[str]:
    if against is None:
        return [f"{figure:.2f}" for figure in figures]
    return [f"{figure:.2f} ({figure - other:+.2f})" for figure, other in zip(figures, against, strict=True)]


Section = tuple[str, str, Callable[[Path], str | None]]  # its title, what its table shows, and the table


def sections(name: str) -> list[Section]:
    """Of a data set."""
    short = f" Runs of {updates:,} updates." if (updates := STUDIED[name].changes.get("updates")) else ""
    common: list[Section] = [
        (
            "Objectives and metrics",
            "mAP-DLM trained for each metric; the rankings of 20-way retrieval on test classes, judged by every metric: "
            f"means in % over seeds.{short}",
            lambda results: objectives_table(results, name),
        ),
        (
            "Signs of the update",
            f"mAP-DLM: means in % over seeds. In brackets: the difference to the positive update; rows with "
            f"{FINE_IN_WORDS} are compared with the one that has these too.{short}",
            lambda results: signs_table(results, name),
        ),
        (
            "Classes of a batch",
            f"mAP-DLM: means in % over seeds. In brackets: the difference to the paper's batch; rows with "
            f"{FINE_IN_WORDS} are compared with the one that has these too.{short}",
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
    "and with those of each episode. In brackets: the difference to the runs in which nothing is changed.",
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
        parts += [f"## Studies on {NAMES[name]}", *there] if there else []
    return "\n\n".join(parts) + "\n" if parts else ""
