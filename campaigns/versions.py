"""Other versions of Python and of the packages: `python -m campaigns.versions [--pythons 3.12 …] [--packages oldest …]`.

Builds the wheel. For each Python and each set of packages, makes a virtual environment, installs the wheel there with every
extra that its users may want, and runs the quick tests against what is installed. "oldest" is the lowest version of each
package that pyproject.toml allows, "newest" is what pip would install today. A Python is a version, which uv looks for on
this machine, or a path. The extra `onnx` needs a newer torch than the rest, so "oldest" leaves it out.

Adds to results/campaigns/versions.json; the exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rankshot.hardware import circumstances

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results" / "campaigns" / "versions.json"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PACKAGES = {"oldest": "lowest-direct", "newest": "highest"}  # -> what uv calls it
EXTRAS = ("faiss", "gallery", "milvus", "onnx", "parquet", "photographs", "serve", "tensorboard", "train", "transformers")
NEWER = ("onnx",)  # extras that need a newer torch than the rest
TOOLS = ("bench", "test")  # extras that tests need; of their packages the newest that go with the others
TOLD = ("torch", "numpy", "pillow", "scikit-learn", "safetensors", "tyro", "transformers", "fastapi", "onnx")
WHAT = r"(\d+) (passed|failed|skipped|errors?)"
# Warnings are errors in `make test`. What another version of a package warns of is not for us to mend.
PYTEST = ("-q", "--dist", "worksteal", "-m", "not slow", "--tb=short", "-p", "no:cacheprovider")
SETTINGS = ("-o", "filterwarnings=default", "-o", "pythonpath=tests .")
# A page that shows what these runs find out.
NOT_RUN = ("--deselect", "tests/test_documentation.py::test_figures_are_those_of_the_last_measurement[campaigns.md]")


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, text=True, check=True, **options)  # type: ignore[call-overload, no-any-return]


def uv(*words: object) -> None:
    run(sys.executable, "-m", "uv", "--quiet", *words)


def is_here(python: str) -> bool:
    """Whether uv finds it."""
    command = [sys.executable, "-m", "uv", "python", "find", "--no-python-downloads", python]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def wheel(folder: Path) -> Path:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def install(python: str, packages: str, built: Path, environment: Path) -> Path:
    """A new environment with the wheel and what tests need; its interpreter."""
    uv("venv", "--no-python-downloads", "--python", python, environment)
    interpreter = environment / "bin" / "python"
    wanted = [name for name in EXTRAS if packages != "oldest" or name not in NEWER]
    extras = [name for name in wanted if available(name, interpreter)]
    pinned = environment / "pinned.txt"
    uv("pip", "compile", *options(extras), "--python", interpreter, "--resolution", PACKAGES[packages], "-o", pinned)
    uv("pip", "install", "--python", interpreter, "-c", pinned, f"{built}[{','.join((*extras, *TOOLS))}]")
    uv("pip", "check", "--python", interpreter)
    return interpreter


def options(extras: list[str]) -> list[str]:
    return [str(ROOT / "pyproject.toml"), *(f"--extra={name}" for name in extras)]


def available(extra: str, python: Path) -> bool:
    """Whether there are wheels of an extra's packages for this Python; what would be compiled is left out."""
    command = ["uv", "pip", "compile", "--quiet", "--only-binary", ":all:", "--python", str(python), *options([extra])]
    found = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    if found.returncode and "wheel" not in found.stderr:  # something else is wrong: the index, the resolution, uv itself
        raise RuntimeError(f"the extra {extra} cannot be looked up: {found.stderr.strip()}")
    if found.returncode:
        print(f"  without the extra {extra}: {found.stderr.strip()}", flush=True)
    return found.returncode == 0


def installed(python: Path) -> dict[str, str]:
    code = "import importlib.metadata, json; all = importlib.metadata.distributions()"
    names = json.loads(said(python, f"{code}; print(json.dumps({{each.name.lower(): each.version for each in all}}))"))
    return {name: names[name] for name in TOLD if name in names}


def said(python: Path, code: str) -> str:
    """What a line of Python prints there."""
    return run(python, "-c", code, stdout=subprocess.PIPE).stdout.strip()


def tested(python: Path, tests: list[str], workers: int) -> tuple[dict[str, int], list[str]]:
    """How many tests passed, failed and were skipped; and which failed."""
    where = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, "-m", "pytest", "-n", workers, *PYTEST, *SETTINGS, *NOT_RUN, *tests]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, env=where, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    failed = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED", "ERROR"))]
    counts = {what: int(count) for count, what in re.findall(WHAT, lines[-1] if lines else "")}
    if not counts.get("passed"):
        failed.append(f"no test passed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return counts, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--pythons", nargs="+", default=PYTHONS, metavar="PYTHON", help="versions, or paths of interpreters"
    )
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=list(PACKAGES))
    parser.add_argument("--tests", nargs="+", default=["tests"], help="which tests to run")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    wrong, tried = False, 0
    for python in asked.pythons:
        if not is_here(python):
            print(f"Python {python} is not here; `uv python install {python}` gets it", flush=True)
            continue
        for packages in asked.packages:
            with tempfile.TemporaryDirectory() as folder:
                print(f"Python {python}, {packages} packages", flush=True)
                Path(folder).chmod(0o755)  # tests run Python as another user, too
                interpreter = install(python, packages, wheel(Path(folder)), Path(folder, "environment"))
                counts, failed = tested(interpreter, asked.tests, asked.workers)
                about = {name: value for name, value in circumstances(0).items() if name not in ("torch", "numpy")}
                record = {
                    **about,
                    "python": said(interpreter, "import platform; print(platform.python_version())"),
                    "packages": installed(interpreter),
                    "tests": asked.tests,
                    **counts,
                    "failures": failed,
                }
            keep(f"Python {str(record['python']).rpartition('.')[0]}, {packages} packages", record)
            print("  " + ", ".join(f"{count} {what}" for what, count in counts.items()), *failed, sep="\n  ", flush=True)
            wrong |= bool(failed)
            tried += 1
    sys.exit(wrong or not tried)


def keep(name: str, record: dict[str, object]) -> None:
    """Beside what earlier calls have measured."""
    known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    RESULT.write_text(json.dumps({**known, name: record}, indent=1) + "\n")


if __name__ == "__main__":
    main()
