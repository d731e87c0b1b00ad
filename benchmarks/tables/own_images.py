"""Preparing images, galleries, classifiers that may answer "none of these", and the weights that come with rankshot."""

from __future__ import annotations

import json

from rankshot.models.shipped import FOLDER as SHIPPED
from rankshot.models.shipped import shipped
from rankshot.reproduce.tables import in_percent
from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER, ROOT


def data() -> str:
    """Preparing and loading."""
    r = json.loads((FOLDER / "data.json").read_text())
    where = f"{r['processor']}, {r['threads']} cores, {r['date']}, commit {r['commit'][:10]}"
    rows = [
        [
            f"{x['images']:,} images",
            f"{x['seconds']:.1f} s",
            f"{x['anonymous_mib']:.0f} MiB",
            f"{1e3 * x['load_seconds']:.0f} ms",
            f"{x['load_anonymous_mib']:.0f} MiB",
        ]
        for x in r["mini-imagenet"]
    ]
    draft = r["draft"]
    return "\n\n".join(
        [
            f"Measured on {where}.",
            "**mini-ImageNet from its zip files**, 84x84; memory: growth of the anonymous memory of the process (RssAnon)",
            table(["", "preparing", "memory", "`load`", "memory for `load` and 100 batches of 128"], rows),
            f"**Photographs of 500x375 to 84x84**: {draft['plain_ms']:.2f} ms decoded in full, {draft['ours_ms']:.2f} ms"
            f" with JPEG draft mode, **{draft['ratio']:.1f}x**.",
        ]
    )


def gallery() -> str:
    r = json.loads((FOLDER / "gallery.json").read_text())
    e, g = r["embedding"], r["gallery"]
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    return "\n\n".join(
        [
            f"Measured on {where}.",
            f"**Embedding JPEG files** of 84x84 with `conv4-mini-imagenet`: {e['images_a_second']['files']:.0f} images per "
            f"second, **{100 * e['of_the_bare_network']:.0f} %** of the bare network on decoded pixels.",
            f"**A gallery of {g['vectors']:,} x {g['dimensions']}**: added in {g['add_seconds']:.1f} s, opened in "
            f"{1000 * g['open_seconds']:.1f} ms, searched for the first time in {1000 * g['first_search_seconds']:.0f} ms "
            f"(this reads and checks all of it), then in **{g['search_ms_a_query']:.2f} ms per query** in batches of 256.",
            f"**With a filter**, one query: {g['filtered_ms']['sql']:.0f} ms with SQL (`{{'colour': 'red'}}`), "
            f"**{g['sql_is_faster_by']:.1f} times** as fast as a function that looks at the metadata of every image.",
        ]
    )


def rejection() -> str:
    """None of these: what is caught at what price."""
    rows, asked, notes = [], [], []
    for path in sorted((FOLDER / "rejection").glob("*.json")):
        r = json.loads(path.read_text())
        asked = r["asked"]
        for shot, shares in r["curves"].items():
            for name, key in (("known images lost", "turned_away"), ("strangers caught", "caught")):
                rows.append([f"`{path.stem}`", f"{shot}: {name}", *(f"{100 * share:.1f} %" for share in shares[key])])
        where = f"{r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
        notes.append(f"`{path.stem}` ({r['episodes']:,} episodes of {r['way']} classes): {where}.")
    return "\n\n".join([table(["", "`reject`", *map(str, asked)], rows), " ".join(notes)])


SCORES = {
    "cosine": "cosine with the nearest taught class",
    "class-means-0.5": "that, minus 0.5 times the cosine with the nearest training class",
    "class-means-0.75": "that, minus 0.75 times the cosine with the nearest training class",
    "energy-0.02": "soft maximum over taught classes, temperature 0.02",
    "energy-0.05": "soft maximum over taught classes, temperature 0.05",
    "energy-0.02-without-background": "soft maximum over taught classes, temperature 0.02",
    "energy-0.05-without-background": "soft maximum over taught classes, temperature 0.05",
    "energy-ratio-0.05-0.75": "soft maximum, temperature 0.05, minus 0.75 times that over training classes",
    "energy-ratio-0.07-0.75": "soft maximum, temperature 0.07, minus 0.75 times that over training classes",
    "energy-ratio-0.1-1.0": "soft maximum, temperature 0.1, minus that over training classes",
    "bgim50-1.0": "cosine, minus its mean over the 50 nearest training images",
    "energy-0.03-bgim50-1.0": "soft maximum, temperature 0.03, minus the mean over the 50 nearest training images",
    "class-deviation-20": "cosine divided by the deviation within the class, shrunk",
    "class-offset-0.25": "cosine minus the level of the class, shrunk",
    "plda-v-0.6-0.5": "probabilistic linear discriminant analysis",
    "trunkmax--0.02": "cosine and the largest feature before the head",
    "learned-logistic": "logistic regression on 18 such scores",
    "learned-mlp": "a small network on 18 such scores",
    "oracle-all-images": "*for comparison:* class means of all images of a class",
    "oracle-strangers-5": "*for comparison:* five images of the strangers are taught too",
}


def rejection_trials() -> str:
    """Scores that were measured on test classes, of the many that were tried on validation classes."""
    lines = (ROOT / "results" / "trials" / "rejection.jsonl").read_text().splitlines()
    trials = [json.loads(line) for line in lines]
    figures: dict[str, dict[str, list[str]]] = {}
    for trial in trials:
        if trial["test"] and trial["score"] in SCORES:
            found = [f"{100 * trial[split]['caught_at_just_that_price']:.1f}" for split in ("val", "test")]
            figures.setdefault(SCORES[trial["score"]], {})[trial["data"]] = found
    rows = [
        [name, *(value for data_set in ("mini-imagenet", "grocery") for value in of_it.get(data_set, ["–", "–"]))]
        for name in dict.fromkeys(SCORES.values())
        if (of_it := figures.get(name))
    ]
    columns = [f"{data_set}, {split}" for data_set in ("mini-ImageNet", "grocery") for split in ("validation", "test")]
    tried = sum(not trial["score"].startswith(("mini ", "grocery ")) for trial in trials)
    return f"{table(['', *columns], rows)}\n\n{tried} scores and settings were tried in all."


def ready() -> str:
    """The weights that come with the package, as their cards have them."""
    evaluations = {name: json.loads((SHIPPED / name / "evaluation.json").read_text()) for name in shipped()}
    tasks = ["1-shot 5-way", "1-shot 20-way", "5-shot 20-way", "retrieval 20-way"]
    rows = [
        [
            f"`{name}`",
            *(in_percent(r["tasks"][task], 1) for task in tasks),
        ]
        for name, r in evaluations.items()
    ]
    episodes = [r["episodes"] for r in evaluations.values()]
    numbers = " to ".join(f"{number:,}" for number in sorted({min(episodes), max(episodes)}))
    many = f"{numbers} episodes per task, batch norm with running statistics"
    by_mean = ", ".join(f"`{name}`" for name, r in evaluations.items() if r.get("rule") == "prototype")
    note = f"On the test classes, in %: {many}. The decision rule is `ap`; for {by_mean} it is `prototype`."
    return f"{table(['', *tasks], rows)}\n\n{note}"
