"""`rankshot serve` under load."""

from __future__ import annotations

import json

from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER


def serving() -> str:
    """Pictures a second with many clients, and the time of an answer with few, beside `Embedder` in batches."""
    r = json.loads((FOLDER / "serving.json").read_text())
    rows, memory = [], []
    for name, x in r["networks"].items():
        embedder, amounts = x["embedder"], [each["pictures_a_request"] for each in x["many"]]
        for place, a_request in enumerate(amounts):
            many, few, batch = x["many"][place], x["few"][place], embedder["batches"][place]
            rows.append(
                [
                    f"`{name}`, {a_request} per request",
                    f"{embedder['pictures_a_second']:,.0f}",
                    f"{many['pictures_a_second']:,.0f}",
                    f"**{100 * x['share_of_embedder'][place]:.0f} %**",
                    f"{few['p50_ms']:.0f} ms",
                    f"{few['p95_ms']:.0f} ms",
                    f"{batch['ms']:.0f} ms",
                    f"**{x['p95_of_batch'][place]:.1f}x**",
                ]
            )
        memory.append(f"`{name}` {', '.join(f'{each / 2**20:.0f}' for each in x['server_memory_bytes'])}")
    refused = {status for x in r["networks"].values() for each in (*x["many"], *x["few"]) for status in each["statuses"]}
    columns = [
        "",
        "`Embedder`",
        "64 clients",
        "share",
        "8 clients: median",
        "p95",
        "the same images as one batch",
        "p95 / batch",
    ]
    where = f"{r['processor']}, {r['threads']} threads, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    return "\n\n".join(
        [
            table(columns, rows),
            f"`Embedder` and 64 clients: images per second. Each load lasts {r['seconds']:.0f} s. HTTP statuses: "
            f"{', '.join(sorted(refused))}. Memory of the server in MiB, before the first load and after each: "
            f"{'; '.join(memory)}. {where}.",
        ]
    )
