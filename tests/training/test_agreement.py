"""Several processes train one run, by every method that can: the updates are those of one process."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from training.method_processes import CASES, alone, evaluated, images

from rankshot.methods import METHODS, Method
from rankshot.methods.method import method_class
from rankshot.tensors import read_tensors
from rankshot.training.agreement import digest
from rankshot.training.run_folder import STATE, read_metrics

SCRIPT = Path(__file__).parent / "method_processes.py"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The run folders that two processes have made together."""
    folder = tmp_path_factory.mktemp("gloo")
    (folder / "to").mkdir()
    began = [
        subprocess.Popen([sys.executable, str(SCRIPT), str(rank), "2", folder / "meeting", folder / "to"])
        for rank in range(2)
    ]
    assert [process.wait(280) for process in began] == [0, 0]
    return [folder / "to" / str(number) for number in range(len(CASES))]


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.slow
def test_updates_are_those_of_one_process(case, shared):
    folder, expected = shared[list(CASES).index(case)], alone(CASES[case])
    found = read_tensors(folder / STATE)
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=2e-5, msg=f"{case}: {name}")
    assert [line["update"] for line in read_metrics(folder)] == [3, 3]


def test_evaluations_are_those_of_one_process(shared):
    expected = evaluated(together=False)
    for rank in range(2):
        found = json.loads((shared[0].parent / f"evaluated-{rank}.json").read_text())
        assert found.keys() == expected.keys()
        for name, values in found.items():
            for one, other in zip(values, expected[name], strict=True):
                assert one == pytest.approx(other, abs=1e-6), name


def test_who_cannot():
    assert {name for name in METHODS if not method_class(name).in_parts} == {"maml", "meta-lstm", "arc"}


def test_a_method_with_a_learn_of_its_own_has_to_say_so():
    class Own(Method):
        def learn(self, model, images, labels):
            return model(images).sum(), None

    class Says(Own):
        in_parts = True

        def learn(self, model, images, labels):
            return self.embed(model, images).sum(), None

    class AsBefore(Says):
        pass

    assert [Method.in_parts, Own.in_parts, Says.in_parts, AsBefore.in_parts] == [True, False, True, True]


def test_a_digest_knows_images_labels_and_classes():
    one = images(0, 6)
    assert digest(one) == digest(images(0, 6))
    others = [images(1, 6), images(0, 5)]
    pixels, labels = one.images.copy(), one.labels.copy()
    pixels[3, 0, 2, 2] ^= 1
    labels[[7, 8]] = labels[[8, 7]]
    others += [type(one)(pixels, one.labels, one.classes), type(one)(one.images, labels, one.classes)]
    assert len({digest(each) for each in (one, *others)}) == 5
    assert digest(type(one)(np.ascontiguousarray(one.images), one.labels, one.classes)) == digest(one)
