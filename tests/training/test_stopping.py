"""Asked to stop once, a run may finish; asked twice, it stops."""

import os
import signal
import threading

import pytest

from rankshot.training.stopping import stop_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks(number):
    before = signal.getsignal(number)
    with stop_signals() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.is_set()
    assert signal.getsignal(number) == before


def test_the_second_signal_stops():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have switched off

    def asked_twice():
        with stop_signals():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            asked_twice()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_that_comes_at_once(monkeypatch):
    """Between the first handler and the second there is nothing that is not known yet."""
    install, before = signal.signal, {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def and_at_once(number, handler):
        found = install(number, handler)
        if handler is not before[number]:
            os.kill(os.getpid(), number)
        return found

    monkeypatch.setattr(signal, "signal", and_at_once)
    with stop_signals() as stop:
        assert stop.is_set()
    monkeypatch.undo()
    assert {each: signal.getsignal(each) for each in before} == before


def test_in_another_thread_signals_are_left_alone():
    seen = []

    def inside():
        with stop_signals() as stop:
            seen.append(stop.is_set())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [False]
