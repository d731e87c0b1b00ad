"""What the README tells a newcomer to run, run."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_quickstart_learns_to_retrieve_what_it_never_saw():
    done = subprocess.run([sys.executable, EXAMPLES / "quickstart.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = re.findall(r"seen in training (\S+)   on digits never seen (\S+)", done.stdout)
    (seen_before, unseen_before), (seen_after, unseen_after) = ([float(x) for x in steps[at]] for at in (0, -1))
    assert seen_after > max(0.95, seen_before)
    assert unseen_after > unseen_before
