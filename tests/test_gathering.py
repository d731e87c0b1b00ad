"""Several processes as one: what each is told, and who fails when one does."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rankshot import gathering
from rankshot.gathering import any_of, average_, failing_together, part_of, told_by_all, told_by_first, whole_of

SCRIPT = Path(__file__).parent / "gathering_processes.py"
IMAGES, WORLD = 7, 3


@pytest.fixture(scope="module")
def processes():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    command = [sys.executable, str(SCRIPT)]
    began = [
        subprocess.Popen([*command, str(rank), str(WORLD), str(port)], stdout=subprocess.PIPE, text=True)
        for rank in range(WORLD)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in began]
    assert all(process.returncode == 0 for process in began)
    return [json.loads(output) for output in outputs]


def test_who_is_who(processes):
    assert [found["who"] for found in processes] == [[rank, WORLD, WORLD, rank == 0] for rank in range(WORLD)]


def test_parts_make_the_whole_with_its_gradient(processes):
    numbers = torch.arange(2.0 * IMAGES).view(IMAGES, 2).requires_grad_()
    (numbers**2 * torch.arange(IMAGES)[:, None]).sum().backward()
    for found in processes:
        assert found["whole"] == (numbers.detach() ** 2).tolist()
    gradient = [row for found in processes for row in found["gradient"]]
    assert gradient == (WORLD * numbers.grad).tolist()  # every process has computed the same loss


def test_numbers_of_all(processes):
    for found in processes:
        assert found["average"] == [[1.0, 1.0], [[10.0, 10.0, 10.0]]]
        assert found["first"] == 5
        assert found["any"] == [True, False, True]


def test_messages_of_all(processes):
    everyone = [{"rank": rank, "name": "é\udcff" * rank} for rank in range(WORLD)]
    for found in processes:
        assert found["told"] == [everyone, [1, None], 0]


def test_what_fails_in_one_fails_in_all_and_is_told_once(processes):
    first, *others = (found["failures"] for found in processes)
    assert first == [["ValueError", "process 1: no room"], ["OSError", "no room"], ["OSError", "no room"]]
    for failures in others:
        assert failures == [["ToldByFirst", "see process 0: no room"]] * 3


def test_the_first_of_a_machine_goes_first(processes):
    assert all(found["waited"] for found in processes)


def test_a_process_by_itself():
    values = torch.rand(3)
    assert part_of(values) is values
    assert whole_of(values, 3) is values
    average_([values])
    assert any_of(True, False) == [True, False]
    assert told_by_all("x") == ["x"]
    assert told_by_first("x") == "x"
    assert gathering.is_first()
    with pytest.raises(KeyError), failing_together():
        raise KeyError
