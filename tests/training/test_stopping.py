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


def test_in_another_thread_signals_are_left_alone():
    seen = []

    def inside():
        with stop_signals() as stop:
            seen.append(stop.is_set())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [False]
