"""The memory against one of plain lists."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from methods.made import made

from rankshot.methods.memory import EMPTY, Memory


class PlainMemory:
    """One image at a time, one slot at a time."""

    def __init__(self, slots):
        self.slots = [{"key": None, "value": EMPTY, "age": 2 * slots - place} for place in range(slots)]

    def nearest(self, query, among):
        there = [each for each in self.slots if each["key"] is not None and among(each["value"])]
        return max((float(each["key"] @ query) for each in there), default=None)

    def write(self, key, value):
        there = [each for each in self.slots if each["key"] is not None]
        best = max(there, key=lambda each: float(each["key"] @ key), default=None)
        for each in self.slots:
            each["age"] += 1
        if best is not None and best["value"] == value:
            both = best["key"] + key
            best.update(key=both / both.norm(), age=0)
        else:
            oldest = max(self.slots, key=lambda each: each["age"])
            oldest.update(key=key, value=value, age=0)


def unit(*shape, seed):
    return torch.nn.functional.normalize(
        torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=-1
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.lists(st.integers(0, 3), min_size=1, max_size=14), st.integers(0, 1000))
def test_writing(slots, values, seed):
    keys = unit(2, len(values), 3, seed=seed)
    memory = Memory.empty(2, slots, keys)
    plain = [PlainMemory(slots) for _ in range(2)]
    for place, value in enumerate(values):
        memory = memory.written(keys[:, place], torch.tensor([value, (value + 1) % 4]))
        for episode in range(2):
            plain[episode].write(keys[episode, place], (value + episode) % 4)
    for episode in range(2):
        for slot, expected in enumerate(plain[episode].slots):
            assert memory.values[episode, slot] == expected["value"]
            assert memory.ages[episode, slot] == expected["age"]
            if expected["key"] is not None:
                torch.testing.assert_close(memory.keys[episode, slot], expected["key"])


def test_classes_are_as_near_as_their_nearest_key():
    model, _ = made("memory", options=("tasks=2",))
    support, queries = unit(1, 3, 4, 5, seed=0), unit(1, 6, 5, seed=1)
    plain = PlainMemory(12)
    for shot in range(4):
        for label in range(3):
            plain.write(support[0, label, shot], label)
    scores = model.class_scores(3 * support, 2 * queries)
    for query in range(6):
        expected = [plain.nearest(queries[0, query], lambda value, label=label: value == label) for label in range(3)]
        torch.testing.assert_close(scores[0, query], torch.tensor(expected, dtype=torch.float64))


def test_the_loss_is_a_margin_between_right_and_wrong_keys():
    _, method = made("memory", options=("tasks=2", "margin=0.3", "slots=5"), batch_size=24)
    images = unit(2, 12, 4, seed=2)
    lost = []
    for episode in range(2):
        plain = PlainMemory(5)
        for place in range(12):
            label, query = place % 3, images[episode, place]
            right = plain.nearest(query, lambda value, label=label: value == label)
            wrong = plain.nearest(query, lambda value, label=label: value != label)
            if right is not None and wrong is not None:
                lost.append(max(0.0, 0.3 + wrong - right))
            plain.write(query, label)
    torch.testing.assert_close(method.lost(images), torch.tensor(lost, dtype=torch.float64).mean())
    assert lost
