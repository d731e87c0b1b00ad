"""What `make quickstart` shows, kept: reads its runs and writes results/quickstart.json."""

from __future__ import annotations

import json
from pathlib import Path

from rankshot.fewshot import summary
from rankshot.hardware import circumstances
from rankshot.report import measure, measure_untrained, protocol_for
from rankshot.schema import read_json
from rankshot.training.run_folder import read_metrics

from .places import QUICKSTART

RUNS = Path("runs/quickstart")


def main() -> None:
    folders = {name: RUNS / name for name in ("map-dlm", "siamese")}
    protocol = protocol_for(list(folders.values()))
    columns = [measure_untrained(RUNS / "map-dlm", protocol)]
    columns += [measure(folder, protocol, name) for name, folder in folders.items()]
    results = {
        **circumstances(protocol.seed),
        "data": protocol.data,
        "split": protocol.split,
        "episodes": protocol.episodes,
        "norm": protocol.batch_norm,
        "configs": {name: read_json(folder / "config.json") for name, folder in folders.items()},
        "training_seconds": {
            name: max(line["seconds"] for line in read_metrics(folder) if "seconds" in line)
            for name, folder in folders.items()
        },
        "columns": {column.name: summary(column.results) for column in columns},
    }
    QUICKSTART.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
