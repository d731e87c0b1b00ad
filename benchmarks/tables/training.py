"""The training loop, whole runs on a GPU, and the quickstart."""

from __future__ import annotations

import json
import statistics

from rankshot.reproduce.tables import in_percent
from rankshot.reproduce.tables import markdown as table

from ..places import FOLDER, QUICKSTART


def training() -> str:
    """The loop and the evaluator, on every machine that they were measured on."""
    results = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("training*.json"))]
    where = [r["processor"] if "+cu" in r["torch"] else f"{r['processor']}, {r['threads']} threads" for r in results]
    circumstances = "; ".join(
        f"{name}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
        for name, r in zip(where, results, strict=True)
    )
    loops = [
        [
            name,
            f"{x['bare_per_second']:.1f}",
            f"{x['loop_per_second']:.1f}",
            f"**{100 * x['share']:.0f} %**",
            ", ".join(f"{100 * a / b:.0f}" for a, b in zip(x["all"]["loop"], x["all"]["bare"], strict=True)),
        ]
        for name, x in zip(where, (r["loop"] for r in results), strict=True)
    ]
    evaluations = [
        [name, f"{x['embedding_s']:.1f} s", f"{x['episodes_s']:.1f} s", f"{x['anew_s']:.0f} s", f"**{x['ratio']:.0f}x**"]
        for name, x in zip(where, (r["evaluation"] for r in results), strict=True)
    ]
    return "\n\n".join(
        [
            f"Measured on {circumstances}.",
            "**The loop**: updates per second of Conv4 with mAP-DLM on 128 images of 28x28, without validation",
            table(["", "bare step", "`train`", "share: median of five rounds", "each round, in %"], loops),
            "**The evaluator**: six tasks with 1,000 episodes each",
            table(["", "embedding all images once", "all episodes", "embedding each episode again", "ratio"], evaluations),
        ]
    )


def images_on() -> str:
    """Training images on the GPU and on the CPU."""
    r = json.loads((FOLDER / "images_on.json").read_text())
    rates = {place: f"{statistics.median(values):.0f}" for place, values in r["updates_a_second"].items()}
    same = "identical, bit by bit" if r["same_weights"] else "different"
    where = f"{r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    return (
        f"Conv4 on mini-ImageNet, {r['updates']:,} updates: {rates['cuda']} updates per second with all images on the GPU, "
        f"{rates['cpu']} with images on the CPU: **{100 * r['ratio']:.0f} %**. The learned weights are {same} ({where})."
    )


def compiled() -> str:
    """torch.compile and CUDA graphs."""
    r = json.loads((FOLDER / "compiled.json").read_text())
    rows = [
        [way, f"{statistics.median(rates):.1f}", f"**{r['of_plain'][way]:.2f}x**"]
        for way, rates in r["updates_a_second"].items()
    ]
    where = f"{r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}"
    note = f"ResNet-12, 128 images of 84x84, bfloat16, {r['updates']} updates on {where}."
    return f"{table(['', 'updates per second', 'ratio to plain'], rows)}\n\n{note}"


def importing() -> str:
    """What `import rankshot` adds to `import torch`."""
    results = json.loads((FOLDER / "importing.json").read_text())
    took, torch = results["seconds"], results["seconds"]["torch"]
    rows = [
        ["`import rankshot`", f"{1000 * (took['rankshot'] - torch):+.0f} ms"],
        ["`rankshot.losses`, `ranking` and `models`", f"{1000 * (took['losses'] - torch):+.0f} ms"],
        [
            "`rankshot.gallery`, `training`, `fewshot` and `adaptation`, with scikit-learn",
            f"{1000 * (took['everything'] - torch):+.0f} ms",
        ],
    ]
    where = f"{results['processor']}, Python {results['python']}, torch {results['torch']}, {results['date']}"
    intro = f"Measured on {where}: medians of {results['rounds']} rounds. `import torch` alone takes {torch:.2f} s."
    return f"{intro}\n\n{table(['', 'beyond `import torch`'], rows)}"


def heap() -> str:
    """Training on a CPU with freed memory given back, and kept."""
    results = json.loads((FOLDER / "heap.json").read_text())
    plain, kept = results["given_back"], results["kept"]
    rows = [
        [
            name,
            f"{1000 * measured['seconds_an_update']:.0f} ms",
            f"{measured['faults_an_update']:,.0f}",
            f"{measured['peak_bytes'] / 2**20:.0f} MiB",
        ]
        for name, measured in (("given back to the system at once", plain), ("kept", kept))
    ]
    where = f"{results['processor']}, {results['threads']} threads, torch {results['torch']}, {results['date']}"
    return "\n\n".join(
        [
            f"`python -m benchmarks.heap`, measured on {where}, commit {results['commit'][:10]}. "
            f"Keeping the memory is **{plain['seconds_an_update'] / kept['seconds_an_update']:.2f}x** as fast.",
            table(["freed memory is", "time per update", "page faults per update", "peak memory"], rows),
        ]
    )


def quickstart() -> str:
    """The table that `make quickstart` ends with."""
    r = json.loads(QUICKSTART.read_text())
    tasks = next(iter(r["columns"].values()))
    rows = [
        [
            task,
            *(in_percent(column[task], 1) for column in r["columns"].values()),
        ]
        for task in tasks
    ]
    seconds = sum(r["training_seconds"].values())
    where = f"{r['processor']}, {r['threads']} threads"
    note = f"{r['episodes']:,} episodes per task; both trainings together took {seconds:.0f} s on {where}, {r['date']}."
    return f"{table(['accuracy, or mAP of retrieval, %', *r['columns']], rows)}\n\n{note}"


def speed() -> str:
    """Whole runs of the paper on a GPU, and the methods beside one another."""
    path = FOLDER / "speed.json"
    if not path.exists():
        return "Not measured yet."
    r = json.loads(path.read_text())
    rows, whole = [], []
    for name, title in (("omniglot", "Omniglot, 28x28"), ("mini-imagenet", "mini-ImageNet, 84x84")):
        rates = r[name]["updates_per_second"]
        ours = rates["map-dlm"]
        others = [f"{rate:.0f} ({rate / ours:.2f}x)" for method, rate in rates.items() if method != "map-dlm"]
        rows.append([title, f"{ours:.0f}", *others])
        run = r[name]["whole_run"]
        whole.append(f"{title}: {run['updates']:,} updates of mAP-DLM in **{run['seconds']:.0f} s**")
    methods = list(r["omniglot"]["updates_per_second"])
    rounds = len(r["omniglot"]["all"]["map-dlm"])
    return "\n\n".join(
        [
            f"Measured on {r['processor']}, torch {r['torch']}, {r['date']}, commit {r['commit'][:10]}.",
            "**Whole runs** in one process, from opening the prepared data to writing the last file: "
            + "; ".join(whole)
            + ".",
            f"**Updates per second** in the same loop, batches of 128; medians of {rounds} interleaved rounds",
            table(["", *methods], rows),
        ]
    )
