"""The memory against one of plain lists."""

import pytest
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
        return max((each["key"] @ query for each in there), default=None)

    def write(self, *images):
        """Some at once, (key, value) each: all look first, then all are written."""
        there = [each for each in self.slots if each["key"] is not None]
        best = [max(there, key=lambda each, key=key: float(each["key"] @ key), default=None) for key, _ in images]
        is_right = [slot is not None and slot["value"] == value for slot, (_, value) in zip(best, images, strict=True)]
        hit = [id(slot) for slot, right in zip(best, is_right, strict=True) if right]
        oldest = sorted((each for each in self.slots if id(each) not in hit), key=lambda each: -each["age"])
        for each in self.slots:
            each["age"] += 1
        for place, (key, value) in enumerate(images):
            if is_right[place]:
                both = best[place]["key"] + key
                best[place].update(key=both / both.norm(), age=0)
            else:
                oldest.pop(0).update(key=key, value=value, age=0)


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
        memory = memory.written(keys[:, [place]], torch.tensor([[value], [(value + 1) % 4]]))
        for episode in range(2):
            plain[episode].write((keys[episode, place], (value + episode) % 4))
    for episode in range(2):
        assert_same(memory, episode, plain[episode])


def assert_same(memory, episode, plain):
    for slot, expected in enumerate(plain.slots):
        assert memory.values[episode, slot] == expected["value"]
        assert memory.ages[episode, slot] == expected["age"]
        if expected["key"] is not None:
            torch.testing.assert_close(memory.keys[episode, slot], expected["key"])


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 9), st.integers(1, 6), st.integers(0, 1000))
def test_writing_several_at_once(slots, times, seed):
    """Images of three values, with the memory full or not."""
    keys = unit(1, times, 3, 2, seed=seed)
    memory, plain = Memory.empty(1, slots, keys), PlainMemory(slots)
    for time in range(times):
        memory = memory.written(keys[:, time], torch.tensor([[0, 1, 2]]))
        plain.write(*zip(keys[0, time], range(3), strict=True))
    assert_same(memory, 0, plain)


@pytest.mark.parametrize("slots", [3, 5, 256])
def test_classes_are_as_near_as_their_nearest_key(slots):
    """With few slots, one may have been pushed out altogether."""
    model, _ = made("memory", tasks=1, slots=slots)
    support, queries = unit(1, 3, 4, 5, seed=0), unit(1, 6, 5, seed=1)
    plain = PlainMemory(min(slots, 12))
    for shot in range(4):
        for label in range(3):
            plain.write((support[0, label, shot], label))
    scores = model.class_scores(3 * support, 2 * queries)
    for query in range(6):
        found = [plain.nearest(queries[0, query], lambda value, label=label: value == label) for label in range(3)]
        expected = [-2.0 if each is None else float(each) for each in found]
        torch.testing.assert_close(scores[0, query], torch.tensor(expected, dtype=torch.float64))
    with pytest.raises(ValueError, match=f"a memory of {slots} slots cannot hold {slots + 1} classes"):
        model.class_scores(unit(1, slots + 1, 1, 5, seed=0), queries)


@pytest.mark.parametrize("in_common", [0, 1, 3])
@pytest.mark.parametrize(("slots", "shared"), [(7, True), (50, True), (4, False)])
def test_the_loss_is_a_margin_between_right_and_wrong_keys(slots, shared, in_common):
    """Of two episodes that share a memory or not, of images that are their own embeddings; keys are taken as given.

    Where they have classes in common, what is of the same class elsewhere is not wrong, nor is it right.
    """
    model, method = made("memory", tasks=2, margin=0.05, slots=slots, shared=shared, batch_size=24)
    assert model.slots == slots
    images = unit(24, 4, seed=1).requires_grad_()
    classes = torch.tensor([10, 11, 12, *torch.arange(13 - in_common, 16 - in_common)])
    loss, embeddings = method.learn(torch.nn.Flatten(), images, classes.repeat_interleave(4))
    found = torch.autograd.grad(loss, embeddings)[0]
    given = embeddings.detach().requires_grad_()
    of_class = torch.nn.functional.normalize(given, dim=-1).view(2, 3, 4, -1)
    memories = [PlainMemory(slots)] * 2 if shared else [PlainMemory(slots), PlainMemory(slots)]
    lost = []
    for number in range(4):
        for label in range(3):
            together = []
            for task, plain in enumerate(memories):
                query, value = of_class[task, label, number], 3 * task + label
                right = plain.nearest(query, lambda each, value=value: each == value)
                wrong = plain.nearest(query, lambda each, value=value: classes[each] != classes[value])
                if right is not None and wrong is not None:
                    lost.append((0.05 + wrong - right).clamp(min=0))
                together.append((query.detach(), value))
            if shared:
                memories[0].write(*together)
            else:
                for plain, image in zip(memories, together, strict=True):
                    plain.write(image)
    expected = torch.stack(lost).mean()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(found, torch.autograd.grad(expected, given)[0])
    assert 0 < sum(each > 0 for each in lost) < len(lost)


def test_a_single_class_has_nothing_to_learn():
    model, method = made("memory", tasks=2, shared=False, batch_classes=1, batch_size=8)
    assert method.learn(model.train(), torch.rand(8, 1, 16, 16), torch.arange(2).repeat_interleave(4))[0] == 0
