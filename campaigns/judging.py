"""What counts as a failure, and which failures have one cause."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Any

from .arena import TOKEN
from .case import Case
from .forks import Ended

SECONDS = 10.0
MEMORY = 2**30  # bytes above what a good input takes
CODES = (0, 1, 2, 130, 141)
TRACE = "Traceback (most recent call last)"
FRAME = re.compile(r'File "[^"]*?((?:rankshot|campaigns)/[\w/]+\.py)", line \d+, in (\S+)')
STACK_FRAME = re.compile(r'File "[^"]*?(rankshot/[\w/]+\.py)", line \d+ in (\S+)')
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")  # last digits depend on how many were embedded at once
NO_MEMORY = re.compile(r"MemoryError|[Uu]nable to allocate|can't allocate memory|not enough memory")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


@dataclass(frozen=True)
class Failure:
    """kind: traceback, hang, memory, outside, program, answer, code, control, leak; cause: what is alike in many."""

    kind: str
    cause: str
    detail: str = ""


@dataclass(frozen=True)
class Good:
    """What a good input takes and answers."""

    peak: int
    answer: str


def judged(
    case: Case,
    ended: Ended,
    outcome: dict[str, Any] | None,
    events: list[str],
    touched: list[str],
    good: Good | None,
    stack: str = "",
) -> list[Failure]:
    """Everything that is wrong; nothing, if all is well.

    good    of the same family; None: it takes too little memory to count, and its answer does not
    stack   where a child that was ended had been
    """
    failures = [Failure("outside", f"{case.family}: {_kind_of(event)}", event) for event in (*touched, *events)]
    if ended.stopped == "hang":
        return [*failures, Failure("hang", f"{case.family}{_within(stack)}", f"{ended.seconds:.1f} s\n{stack[-1500:]}")]
    if (ended.stopped == "memory" or (good is not None and ended.peak > good.peak + MEMORY)) and not case.asks:
        failures.append(
            Failure("memory", f"{case.family}{_within(stack)}", f"{ended.peak / 2**30:.1f} GiB\n{stack[-1500:]}")
        )
    if outcome is None:
        if not (case.asks and ended.stopped == "memory"):
            ending = signal.Signals(-ended.code).name if ended.code < 0 else f"exit code {ended.code}"
            failures += [Failure("died", f"{case.family}: {ending}{_within(stack)}", stack)] * (ended.stopped != "memory")
        return failures
    for step in outcome["steps"]:
        failures += _of_step(case, step)
    return failures + _of_answer(case, outcome["steps"][-1], good)


def _of_step(case: Case, step: dict[str, Any]) -> list[Failure]:
    printed = step["out"] + step["err"]
    if step["raised"] or TRACE in step["err"]:
        return [Failure("traceback", cause_of(step["raised"] or step["err"]), (step["raised"] or step["err"])[-1500:])]
    failures = []
    if step["code"] not in CODES:
        failures.append(Failure("code", f"{case.family}: exit code {step['code']}"))
    if step["code"] == 1 and not step["err"].strip():
        failures.append(Failure("code", f"{case.family}: an error without a word", printed[:300]))
    if NO_MEMORY.search(printed) and not case.asks:
        failures.append(Failure("memory", f"{case.family}: asked for more than there is", printed[-300:]))
    if case.kind != "options" and CONTROL.search(printed):  # what was typed may be told as it was
        failures.append(Failure("control", f"{case.family}: control characters are printed", repr(printed[-300:])))
    if TOKEN in printed:
        failures.append(Failure("leak", f"{case.family}: tells what lies outside", printed[-300:]))
    return failures


def _of_answer(case: Case, step: dict[str, Any], good: Good | None) -> list[Failure]:
    if case.probe is None or good is None or step["raised"]:
        return []
    texts = (NUMBER.sub(lambda match: f"{float(match[0]):.3f}", text) for text in (good.answer, step["out"]))
    expected, got = ([line for line in text.splitlines() if case.probe in line] for text in texts)
    if got == expected or (not case.must and (step["code"] != 0 or not got)):
        return []
    return [
        Failure("answer", f"{case.family}: another answer", f"wanted {expected}, got {got}; {step['err'][-300:]}"[:1000])
    ]


def cause_of(trace: str) -> str:
    """The last line of ours that was reached, and the kind of error."""
    frames = FRAME.findall(trace)
    lines = [line for line in trace.strip().splitlines() if line and not line.startswith(" ")]
    error = lines[-1].split(":")[0] if lines else "?"
    file, function = frames[-1] if frames else ("?", "?")
    return f"{error} in {file}:{function}"


def _within(stack: str) -> str:
    """The first line of ours in a stack that begins with the last call."""
    match = STACK_FRAME.search(stack)
    return f" in {match[1]}:{match[2]}" if match else ""


def _kind_of(event: str) -> str:
    """What was done, without to which file."""
    return event if event.startswith("starts") else event.split(" ")[0] if " " in event else "a file outside has changed"
