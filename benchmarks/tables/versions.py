"""Which versions of Python and of the packages pass the tests."""

from __future__ import annotations

import json

from rankshot.reproduce.tables import markdown as table

from ..places import ROOT

NAMED = ("torch", "numpy", "pillow", "scikit-learn", "transformers")


def versions() -> str:
    """One row for each environment that `make versions` has tried."""
    path = ROOT / "results" / "campaigns" / "versions.json"
    if not path.exists():
        return "Not run yet."
    rows = []
    for name, x in sorted(json.loads(path.read_text()).items()):
        packages = [x["packages"].get(each, "–") for each in NAMED]
        failed = x.get("failed", 0) + x.get("errors", 0) + x.get("error", 0)
        counts = [f"{count:,}" for count in (x.get("passed", 0), failed, x.get("skipped", 0))]
        rows.append([name.partition(",")[2].split()[0], x["python"], *packages, *counts, x["date"]])
    return table(["packages", "Python", *NAMED, "passed", "failed", "skipped", "date"], rows)
