"""What the README tells a newcomer to run, run."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_own_loop_learns_to_retrieve_what_it_never_saw():
    done = subprocess.run([sys.executable, ROOT / "examples" / "own_loop.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = re.findall(r"seen in training (\S+)   on digits never seen (\S+)", done.stdout)
    (seen_before, unseen_before), (seen_after, unseen_after) = ([float(x) for x in steps[at]] for at in (0, -1))
    assert seen_after > max(0.95, seen_before)
    assert unseen_after > unseen_before


def test_quickstart_in_short(tmp_path):
    """`make quickstart` with a few updates: the commands, the table, the report; and once more, to no harm."""
    command = ["make", "--no-print-directory", "quickstart", f"RUNS={tmp_path}", "UPDATES=30", "EPISODES=50"]
    for _ in range(2):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(r"untrained +map-dlm +siamese", done.stdout)
        (row,) = re.findall(r"1-shot 20-way .*", done.stdout)
        untrained, trained, _ = (float(each) for each in re.findall(r"([0-9.]+) ±", row))
        assert trained > untrained + 10
        assert (tmp_path / "map-dlm" / "report.html").exists()
