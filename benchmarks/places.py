"""Where results are kept."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "results" / "benchmarks"
RESULTS = FOLDER / "ranking.json"
QUICKSTART = ROOT / "results" / "quickstart.json"
