"""Every option of every command with values that nobody means: 0, -1, 2^63, nan, texts without end.

    python tests/cli/option_values.py FOLDER [--sample 40] [--seed 0]

Each is tried in a process of its own, which must end within seconds, with an exit code of 0, 1 or 2, without a traceback
and without gigabytes. Prints who does not, and how many were tried; its exit code is 1 if any did not.
"""

import argparse
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import types
import typing
from pathlib import Path

NUMBERS = [*map(str, (0, -1, 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**30)), "9" * 5000]
NUMBERS += ["1e30", "nan", "inf", "-inf", "1e308", "1e-320", "0.5", ""]
TEXTS = ["", " ", "x" * 100_000, "\x1b[31m", "\udcff", "a=b", "-", "/"]
SECONDS, GIBIBYTES = 10, 2
SMALL = [
    *("--filters", "4", "--batch-classes", "4", "--batch-size", "24", "--updates", "2", "--validation-episodes", "2"),
    *("--device", "cpu", "--validation-ways", "2", "--log-every", "1", "--schedule", "step"),
]
KNOWN = [  # that did not end well once; they come first
    ["--smoothing-samples", str(2**63 - 1)],
    ["--metric", "precision@999999999999999999999"],
    ["--smoothing", "1e308"],
]
USED = {  # what an option counts with
    "smoothing_samples": ["--smoothing", "0.1"],
    "coarse_alpha": ["--coarse-weight", "1"],
    "momentum": ["--optimiser", "sgd"],
}


def kinds_in(hint):
    """The types that a hint is made of: int | None -> {int, NoneType}, tuple[int, ...] -> {int}."""
    inside = [each for each in typing.get_args(hint) if each is not ...]
    if typing.get_origin(hint) is typing.Annotated:
        return kinds_in(inside[0])
    if typing.get_origin(hint) is typing.Literal:
        return {str}
    if inside and not isinstance(hint, type):
        return set().union(*map(kinds_in, inside))
    return {hint}


def options_of(kind):
    """name, type, whether it stands alone, of every option; those of groups too."""
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        kinds = kinds_in(hint) - {types.NoneType, bool}
        if len(kinds) == 1 and typing.is_typeddict(one := next(iter(kinds))):
            yield from options_of(one)
        elif len(kinds) == 1:
            yield name, kinds.pop(), "Positional" in str(hint)


def tries(folder):
    """Command lines, each with one value that is odd."""
    from rankshot.cli import (
        adapt,
        classify,
        data,
        evaluate,
        export,
        gallery,
        gallery_adapt,
        gallery_upkeep,
        reproduce,
        search,
    )
    from rankshot.cli.train_options import options_for
    from rankshot.methods import METHODS
    from rankshot.training import TrainConfig

    run, mine, images = str(folder / "run"), str(folder / "mine"), str(folder / "mine" / "c0")
    small = ["train", "--data", mine, *SMALL]
    commands = [
        (small, options_for(TrainConfig())),
        (["evaluate", run, "--episodes", "2", "--ways", "2", "--shots", "1"], evaluate.Options),
        (["classify", images, "--support", mine, "--model", run], classify.Options),
        (["gallery", "add", str(folder / "other"), images, "--model", run], gallery.Add),
        (["gallery", "info", str(folder / "gallery")], gallery.Info),
        (["gallery", "list", str(folder / "gallery")], gallery_upkeep.List),
        (["gallery", "duplicates", str(folder / "gallery")], gallery_upkeep.Duplicates),
        (["gallery", "rebuild", str(folder / "gallery"), "--model", run], gallery_upkeep.Rebuild),
        (["gallery", "mark", str(folder / "gallery"), "none", "--right", "other"], gallery_adapt.Mark),
        (["gallery", "adapt", str(folder / "gallery"), "--to", str(folder / "adapted")], gallery_adapt.Adapt),
        (["gallery", "delete", str(folder / "gallery"), "none"], gallery.Delete),
        (["search", f"{images}/0.png", "--gallery", str(folder / "gallery")], search.Options),
        (["search", f"{images}/0.png", "--gallery", str(folder / "gallery"), "--sheet", "s.png"], search.Options),
        (["data", "prepare", mine], data.Prepare),
        (["data", "show", mine, "-o", "sheet.png"], data.Show),
        (["data", "list"], data.List),
        (["data", "verify"], data.Verify),
        (["adapt", str(folder / "vectors.npz"), "--out", "map", "--test", "0"], adapt.Options),
        (["export", run, "to"], export.Options),
        (["reproduce", "omniglot", "--list"], reproduce.Options),
    ]
    for base, kind in commands:
        for name, of, positional in options_of(kind):
            for value in NUMBERS if of in (int, float) else TEXTS:
                if positional:
                    yield [*base, value]
                else:
                    option = "from" if (kind, name) == (data.Prepare, "source") else name.replace("_", "-")
                    yield [*base, *(USED.get(name, []) if base is small else []), f"--{option}", value]
    yield from ([*small, "--metric", f"precision@{value}"] for value in (*NUMBERS, "999999999999999999999"))
    batch = ["--batch-size", "24", "--batch-classes", "3"]
    for method, part in METHODS.items():
        for name in part.types:
            more = ["--tasks", "2"] if "tasks" in part.types and name != "tasks" else []
            for value in NUMBERS:
                yield [*small, *batch, "--method", method, *more, f"--{name.replace('_', '-')}", value]


def tried(command):
    """What is wrong with how it ends, if anything; in a process of its own."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as told:
        child = os.fork()
        if not child:
            run_alone(command, told.fileno())
        ended, status, used = 0, 0, None
        while not ended and time.perf_counter() - began < SECONDS:
            ended, status, used = os.wait4(child, os.WNOHANG)
            time.sleep(0.002)
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        told.seek(0)
        text = told.read().decode(errors="replace")
    if not ended:
        return f"took longer than {SECONDS} s"
    code = os.waitstatus_to_exitcode(status)
    last = text.strip().splitlines()[-1:] or [""]
    if code not in (0, 1, 2) or "Traceback" in text:
        return f"exit code {code}: {last[0][:300]}"
    if code == 1 and "rankshot: " not in text:
        return "says nothing"
    if "\x1b" in text:
        return "sends an escape code"
    return "takes memory: " + last[0][:200] if used.ru_maxrss > GIBIBYTES * 2**20 or "enough memory" in text else None


def run_alone(command, told):
    from rankshot.cli.main import main

    code = 99
    try:
        os.setpgid(0, 0)
        for number in (1, 2):
            os.dup2(told, number)
        resource.setrlimit(resource.RLIMIT_AS, (GIBIBYTES * 4 * 2**30, GIBIBYTES * 4 * 2**30))
        try:
            code = main(command)
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def prepared(folder):
    """Images, a run and a gallery to try them on."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    import numpy as np
    import torch
    from pictures import class_folders

    from rankshot.cli.main import main

    torch.set_num_threads(1)
    os.environ["RANKSHOT_DATA"] = str(folder / "root")
    os.chdir(folder)
    mine = class_folders(folder / "mine", classes=10, per_class=8)
    labels = np.repeat(np.arange(6), 10)
    vectors = np.random.default_rng(0).normal(labels[:, None], size=(60, 8))
    np.savez(folder / "vectors.npz", vectors=vectors, labels=labels)
    silent = os.open(os.devnull, os.O_WRONLY)
    before = os.dup(1), os.dup(2)
    for number in (1, 2):
        os.dup2(silent, number)
    assert main(["train", "--data", str(mine), "--run", str(folder / "run"), *SMALL]) == 0
    assert main(["gallery", "add", str(folder / "gallery"), str(mine), "--model", str(folder / "run")]) == 0
    for number, kept in enumerate(before, start=1):
        os.dup2(kept, number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    prepared(options.folder.resolve())
    everything = [command for command in tries(options.folder.resolve()) if options.only in " ".join(command)]
    random.Random(options.seed).shuffle(everything)
    everything.sort(key=lambda command: command[-2:] not in KNOWN)
    some = everything[: int(min(options.sample, len(everything)))]
    found = 0
    for command in some:
        if (wrong := tried(command)) is not None:
            found += 1
            print(ascii(" ".join(each[:60] for each in command)), ascii(wrong), sep="\n  ", flush=True)
    print(f"{len(some)} tried of {len(everything)}, {found} wrong")
    sys.exit(found > 0)
