"""Preparing images, galleries, classifiers that may answer "none of these", and the weights that come along."""

from __future__ import annotations

import json

from rankshot.models.shipped import FOLDER as SHIPPED
from rankshot.models.shipped import shipped
from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER


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
            "**mini-ImageNet from its zips**, 84x84; memory is anonymous (RssAnon), above where it stood",
            table(["", "preparing", "memory", "`load`", "memory of `load` and 100 batches of 128"], rows),
            f"**Photographs of 500x375 to 84x84**: {draft['plain_ms']:.2f} ms decoded in full, {draft['ours_ms']:.2f} ms"
            f" with JPEG draft decoding, **{draft['ratio']:.1f}x**.",
        ]
    )


def gallery() -> str:
    r = json.loads((FOLDER / "gallery.json").read_text())
    e, g = r["embedding"], r["gallery"]
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    return "\n\n".join(
        [
            f"Measured on {where}.",
            f"**Embedding JPEG files** of 84x84 by `conv4-mini-imagenet`: {e['images_a_second']['files']:.0f} images a "
            f"second, **{100 * e['of_the_bare_network']:.0f} %** of the bare network on pixels that are ready.",
            f"**A gallery of {g['vectors']:,} x {g['dimensions']}**: added in {g['add_seconds']:.1f} s, opened in "
            f"{1000 * g['open_seconds']:.1f} ms, searched for the first time in {1000 * g['first_search_seconds']:.0f} ms "
            f"(when all is read and checked), then in **{g['search_ms_a_query']:.2f} ms a query** in batches of 256.",
            f"**With a filter**, one query: {g['filtered_ms']['sql']:.0f} ms by SQL (`{{'colour': 'red'}}`), "
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
            for name, key in (("known images turned away", "turned_away"), ("strangers caught", "caught")):
                rows.append([f"`{path.stem}`", f"{shot}: {name}", *(f"{100 * share:.1f} %" for share in shares[key])])
        where = f"{r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
        notes.append(f"`{path.stem}` ({r['episodes']:,} episodes of {r['way']} classes): {where}.")
    return "\n\n".join([table(["", "`reject`", *map(str, asked)], rows), " ".join(notes)])


def ready() -> str:
    """The weights that come with the package, as their cards have them."""
    evaluations = {name: json.loads((SHIPPED / name / "evaluation.json").read_text()) for name in shipped()}
    tasks = ["1-shot 5-way", "1-shot 20-way", "5-shot 20-way", "retrieval 20-way"]
    rows = [
        [
            f"`{name}`",
            *(f"{100 * r['tasks'][task]['mean']:.1f} ± {100 * r['tasks'][task]['interval']:.1f}" for task in tasks),
        ]
        for name, r in evaluations.items()
    ]
    episodes = [r["episodes"] for r in evaluations.values()]
    many = f"{min(episodes)} to {max(episodes):,} episodes a task, batch norm by running averages"
    by_mean = ", ".join(f"`{name}`" for name, r in evaluations.items() if r.get("rule") == "prototype")
    note = f"On its test classes, in %: {many}. Classified by the AP rule, {by_mean} by the class mean."
    return f"{table(['', *tasks], rows)}\n\n{note}"
