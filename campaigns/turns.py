"""Numbered things, several at a time, each in a child; bounded in time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

from .forks import Child, Ended

TELL = 10.0  # seconds between two lines of progress


def in_turns(
    places: int,
    numbers: Iterator[int],
    seconds: float,
    start: Callable[[int, int], Child],
    done: Callable[[int, int, Ended], object],
    tick: Callable[[], None],
) -> None:
    """`start(number, place)` wherever a place is free, `done(number, place, ended)` when that child has ended.

    A child that `done` returns takes the place of the one before: it is to be tried again.
    """
    began, last = time.monotonic(), 0.0
    running: dict[int, tuple[int, Child]] = {}
    is_over = False
    try:
        while running or not is_over:
            for place in range(places):
                if place in running or is_over:
                    continue
                number = None if time.monotonic() - began > seconds else next(numbers, None)
                if number is None:
                    is_over = True
                    break
                running[place] = (number, start(number, place))
            for place, (number, child) in list(running.items()):
                if (ended := child.ended()) is not None:
                    del running[place]
                    again = done(number, place, ended)
                    if isinstance(again, Child):
                        running[place] = (number, again)
            if time.monotonic() - last > TELL:
                last = time.monotonic()
                tick()
            time.sleep(0.003)
    finally:
        for _, child in running.values():
            child.kill()
            child.wait()


def stop_politely() -> None:
    """A campaign that is asked to stop tidies up, and goes on the next time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(130)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
