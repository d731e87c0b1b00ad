"""How long a run will take, as far as one can tell before it."""

from __future__ import annotations

from .config import TrainConfig


def time_estimate(config: TrainConfig, done: int, update_seconds: float, validation_seconds: float | None) -> str:
    """In a sentence.

    done                 updates that were made already
    validation_seconds   of one validation; None: not known yet
    """
    updates = config.run.updates - done
    seconds = updates * update_seconds
    details = [f"{updates:,} update{'s' * (updates != 1)} of {_seconds(update_seconds)}"]
    beside = ""
    if every := config.validation.every:
        count = -(-config.run.updates // every) - done // every
        validations = f"{count:,} validation{'s' * (count != 1)}"
        if validation_seconds is None:
            beside = f", and {validations}"
        else:
            seconds += count * validation_seconds
            details.append(f"{validations} of {_seconds(validation_seconds)}")
    limit = "" if config.run.minutes is None else f"; it ends after {config.run.minutes:g} minutes at the latest"
    return f"about {in_words(seconds)}{beside}: {', '.join(details)}{limit}"


def in_words(seconds: float) -> str:
    """
    >>> in_words(40), in_words(200), in_words(9000)
    ('40 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' * (round(seconds) > 1)}"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
