"""The evaluator against plain loops: one episode, one query at a time."""

import numpy as np
import pytest
import torch
from oracles import metric_of

from rankshot.data import ImageSet
from rankshot.fewshot import (
    Classification,
    EmbeddingAnswerer,
    Retrieval,
    draw_episodes,
    embed_all,
    evaluate,
    evaluate_embeddings,
    evaluation,
)
from rankshot.models import Conv4
from rankshot.models.largest_layer import NUMBERS_AT_ONCE

TASKS = [
    Classification(5, 1, per_class=6),
    Classification(8, 1, per_class=6),
    Classification(5, 3, per_class=6),
    Classification(8, 5, per_class=6),
    Retrieval(5, per_class=4),
    Retrieval(8, per_class=4),
]


@pytest.fixture(scope="module")
def images():
    random = np.random.default_rng(0)
    centres = random.integers(0, 256, (9, 1, 1, 16, 16))
    pixels = np.clip(centres + random.normal(0, 90, (9, 7, 1, 16, 16)), 0, 255).astype(np.uint8).reshape(63, 1, 16, 16)
    shuffle = random.permutation(63)
    return ImageSet(pixels[shuffle], np.repeat(np.arange(9), 7)[shuffle], tuple("abcdefghi"))


@pytest.fixture
def model():
    torch.manual_seed(0)
    network = Conv4(filters=6)
    network.train()
    for _ in range(5):
        network(torch.rand(20, 1, 16, 16))  # running averages that differ from any batch's
    return network


def oracle(model, images, task, episodes, norm):
    """The paper's procedure, plainly."""

    def embeddings_of(indices):
        pixels = torch.from_numpy(images.images[indices.numpy()]).float() / 255
        model.train(norm == "batch")
        saved = {name: value.clone() for name, value in model.state_dict().items()}
        with torch.no_grad():
            found = torch.nn.functional.normalize(model(pixels), dim=-1)
        model.load_state_dict(saved)
        return found

    values = []
    for episode in draw_episodes(torch.from_numpy(images.labels), task, episodes, seed=5):
        if isinstance(task, Retrieval):
            found = embeddings_of(episode.flatten())
            classes = np.repeat(np.arange(task.way), task.per_class)
            precisions = []
            for query in range(len(found)):
                others = [item for item in range(len(found)) if item != query]
                others.sort(key=lambda item, q=query: (-float(found[q] @ found[item]), classes[item] == classes[q]))
                precisions.append(metric_of([bool(classes[item] == classes[query]) for item in others], "ap"))
            values.append(np.mean(precisions))
            continue
        support, queries = (embeddings_of(part.flatten()) for part in (episode[:, : task.shot], episode[:, task.shot :]))
        right = 0
        for number, query in enumerate(queries):
            near = [(float(query @ each), place // task.shot) for place, each in enumerate(support)]
            keys = []
            for way in range(task.way):
                order = sorted(near, key=lambda each, way=way: (-each[0], each[1] == way))
                ap = metric_of([each[1] == way for each in order], "ap") if task.shot > 1 else 0.0
                keys.append((round(ap, 9), max(similarity for similarity, of in near if of == way)))
            right += keys.index(max(keys)) == number // (task.per_class - task.shot)
        values.append(right / len(queries))
    return np.array(values)


@pytest.mark.parametrize("norm", ["running", "batch"])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_agrees_with_plain_loops(model, images, task, norm):
    (result,) = evaluate(model, images, [task], episodes=8, seed=5, batch_norm=norm)
    expected = oracle(model, images, task, 8, norm)
    np.testing.assert_allclose(result.values, expected, atol=1e-6)
    assert result.mean == pytest.approx(expected.mean(), abs=1e-6)
    assert result.interval == pytest.approx(1.96 * expected.std(ddof=1) / 8**0.5, abs=1e-6)
    assert 0 < result.mean < 1


@pytest.mark.parametrize("norm", ["running", "batch"])
def test_the_model_is_left_as_it_was(model, images, norm):
    model[0].eval()  # a mixture of modes
    modes = [module.training for module in model.modules()]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    evaluate(model, images, TASKS[:1] + TASKS[-1:], episodes=3, batch_norm=norm)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(module.track_running_stats for module in model.modules() if hasattr(module, "track_running_stats"))


@pytest.mark.parametrize("at_once", [1, 1000, 2**23])
@pytest.mark.parametrize("norm", ["running", "batch"])
def test_chunks_and_seeds(model, images, monkeypatch, norm, at_once):
    whole = evaluate(model, images, TASKS, episodes=10, seed=1, batch_norm=norm)
    monkeypatch.setattr(evaluation, "AT_ONCE", {"cpu": at_once})
    monkeypatch.setitem(NUMBERS_AT_ONCE, "cpu", 10 * 64 * 16 * 16)
    for one, other in zip(whole, evaluate(model, images, TASKS, episodes=10, seed=1, batch_norm=norm), strict=True):
        torch.testing.assert_close(one.values, other.values)
    alone = evaluate(model, images, TASKS[2:3], episodes=10, seed=1, batch_norm=norm)  # the other tasks make no difference
    torch.testing.assert_close(alone[0].values, whole[2].values)
    assert not torch.equal(
        evaluate(model, images, TASKS[2:3], episodes=10, seed=2, batch_norm=norm)[0].values, whole[2].values
    )


def test_an_answerer_answers_the_same(model, images):
    model.eval()
    tasks = TASKS[:4]
    embedded = evaluate(model, images, tasks, episodes=6)
    answered = evaluate(EmbeddingAnswerer(model), images, tasks, episodes=6)
    for one, other in zip(embedded, answered, strict=True):
        torch.testing.assert_close(one.values, other.values)
    with pytest.raises(
        ValueError, match="retrieval 5-way needs an embedding network, but EmbeddingAnswerer only classifies"
    ):
        evaluate(EmbeddingAnswerer(model), images, [Retrieval(5, per_class=4)], episodes=6)


def test_support_in_any_order(model):
    model.eval()
    support, queries = torch.rand(6, 1, 16, 16), torch.rand(4, 1, 16, 16)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    shuffle = torch.tensor([3, 0, 5, 2, 1, 4])
    answerer = EmbeddingAnswerer(model)
    torch.testing.assert_close(
        answerer.answer(support, labels, queries), answerer.answer(support[shuffle], labels[shuffle], queries)
    )


def test_bad_input(model, images):
    with pytest.raises(ValueError, match="unknown batch_norm 'layer': use 'running' or 'batch'"):
        evaluate(model, images, TASKS[:1], episodes=3, batch_norm="layer")
    with pytest.raises(ValueError, match="episodes must be a whole number from 2 to 1,000,000, got 1"):
        evaluate(model, images, TASKS[:1], episodes=1)
    with pytest.raises(ValueError, match="1-shot 10-way needs 10 classes, but there are 9"):
        evaluate(model, images, [Classification(10, 1, per_class=6)], episodes=3)


def test_on_any_device(model, images, device):
    here = evaluate(model, images, TASKS, episodes=5)
    there = evaluate(model.to(device), images, TASKS, episodes=5)
    answered = evaluate(EmbeddingAnswerer(model.eval()), images, TASKS[:4], episodes=5)
    for one, other in [*zip(here, there, strict=True), *zip(here[:4], answered, strict=True)]:
        torch.testing.assert_close(one.values, other.values, atol=0.02, rtol=0)


def test_it_prints_as_a_person_would_read_it(model, images):
    (result,) = evaluate(model, images, TASKS[:1], episodes=5)
    assert str(result) == f"1-shot 5-way: {100 * result.mean:.2f} ± {100 * result.interval:.2f} %"


@pytest.mark.parametrize(("held", "at_once"), [(0, 6), (2**25, 4), (2**30, 1)])
def test_episodes_at_once_of_who_holds_much_of_each(images, held, at_once):
    """Half a gigabyte of numbers on a CPU, or what a single episode takes."""
    asked = []

    class First:
        numbers_an_episode = held

        def answer_all(self, support_x, support_y, query_x):
            asked.append(len(support_x))
            return torch.eye(5)[torch.zeros(query_x.shape[:2], dtype=torch.long)]

        def answer(self, support_x, support_y, query_x):
            return self.answer_all(support_x[None], support_y, query_x[None])[0]

    (found,) = evaluate(First(), images, TASKS[:1], episodes=6)
    assert max(asked) == at_once
    assert sum(asked) == 6
    assert found.values.tolist() == pytest.approx([0.2] * 6)
    with pytest.raises(ValueError, match="unknown batch_norm"):
        evaluate(First(), images, TASKS[:1], episodes=6, batch_norm="nonsense")


@pytest.mark.parametrize("rule", ["ap", "prototype", "logistic"])
def test_embeddings_that_are_there_are_asked_the_same(rule, images):
    network, labels = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 6)), torch.from_numpy(images.labels)
    expected = evaluate(network, images, TASKS, 20, 4, rule=rule)
    vectors = 7 * embed_all(network, images)  # of any length
    found = evaluate_embeddings(vectors, labels, TASKS, 20, 4, rule)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.values, other.values)
    with pytest.raises(ValueError, match="rule"):
        evaluate_embeddings(vectors, labels, TASKS, 20, 4, "best")


def test_embeddings_may_be_arrays():
    vectors, labels = np.random.default_rng(0).normal(size=(80, 6)), np.repeat(np.arange(4), 20)
    vectors.flags.writeable = False
    (found,) = evaluate_embeddings(vectors, labels, [Retrieval(4)], 5)
    (expected,) = evaluate_embeddings(torch.tensor(vectors), torch.tensor(labels), [Retrieval(4)], 5)
    assert torch.equal(found.values, expected.values)


@pytest.mark.parametrize(
    ("embeddings", "labels", "kind", "message"),
    [
        ([[1.0, 0.0]], torch.tensor([0]), TypeError, "embeddings must be a tensor or a NumPy array, got list"),
        (torch.eye(2), [0, 1], TypeError, "labels must be a tensor or a NumPy array, got list"),
        (torch.eye(2).long(), torch.tensor([0, 1]), TypeError, r"embeddings must be floating point, got torch\.int64"),
        (torch.eye(2), torch.tensor([0.0, 1.0]), TypeError, r"labels must be integers, got torch\.float32"),
        (torch.eye(2), torch.tensor([0]), ValueError, r"with a label for each, \(n,\), got \(2, 2\) and \(1,\)"),
    ],
)
def test_embeddings_that_are_none(embeddings, labels, kind, message):
    with pytest.raises(kind, match=message):
        evaluate_embeddings(embeddings, labels, [Retrieval(2, 2)], 5)
