"""An interrupt that comes where it could be lost is heard afterwards."""

import os
import signal
import threading

import pytest
import torch
from torch import nn

from rankshot.interruption import interrupts_later
from rankshot.models.largest_layer import largest_layer
from rankshot.training.batch_memory import bytes_an_image


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard():
    """Also where these tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupted(nn.Module):
    """Ctrl-C while it computes; and what it raises then is an error of its own."""

    def forward(self, images):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
        raise RuntimeError("torch calls it so")


@pytest.mark.parametrize("looks", [largest_layer, bytes_an_image])
def test_it_is_not_taken_for_an_error_of_the_network(looks):
    with pytest.raises(KeyboardInterrupt):
        looks(Interrupted(), (3, 8, 8))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_all_is_done_first():
    done = []

    @interrupts_later()
    def work():
        os.kill(os.getpid(), signal.SIGINT)
        done.append(torch.zeros(1))

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_beside_the_main_thread_and_where_nobody_listens():
    found = []

    def work():
        with interrupts_later():
            found.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_later():
            os.kill(os.getpid(), signal.SIGINT)
            found.append(2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == [1, 2]
