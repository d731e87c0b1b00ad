"""A sample of every option with values that nobody means; `python tests/cli/option_values.py FOLDER` tries all of them."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow  # a process for each; tests/test_limits.py has the same in calls from Python
def test_a_sample(tmp_path):
    script = Path(__file__).with_name("option_values.py")
    command = [sys.executable, str(script), str(tmp_path), "--sample", "20", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("20 tried of ")
