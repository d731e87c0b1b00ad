"""Who answers, by what rule, and what cannot be asked."""

import pytest
import torch
from torch import nn

from rankshot.data import ImageSet
from rankshot.fewshot import (
    Answerer,
    Classification,
    EmbeddingAnswerer,
    HasRule,
    Result,
    Retrieval,
    can_answer,
    draw_episodes,
    embed_all,
    evaluate,
)


class Nearest(nn.Module):
    """An embedding of pixels, and a rule: minus the Manhattan distance to the first labelled image."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)

    def forward(self, images):
        return self.norm(images).flatten(1)

    def class_scores(self, support, queries):
        return -(queries[:, :, None] - support[:, None, :, 0]).abs().sum(-1)


class OnlyThree(nn.Module):
    most_ways = 3

    def answer(self, support_x, support_y, query_x):
        return torch.zeros(len(query_x), int(support_y.max()) + 1)


@pytest.fixture
def images():
    random = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (60, 1, 4, 4), generator=random, dtype=torch.uint8).numpy()
    return ImageSet(pixels, (torch.arange(60) // 10).numpy(), tuple("abcdef"))


@pytest.mark.parametrize("norm", ["running", "batch"])
def test_a_rule_of_its_own(images, norm):
    model = Nearest()
    task = Classification(3, 2, per_class=5)
    (found,) = evaluate(model, images, [task], episodes=20, seed=3, batch_norm=norm)
    expected = []
    model.train(norm == "batch")
    for episode in draw_episodes(torch.from_numpy(images.labels), task, 20, seed=3):
        parts = [torch.from_numpy(images.images[part.flatten()]).float() / 255 for part in (episode[:, :2], episode[:, 2:])]
        with torch.no_grad():
            support, queries = (model(part) for part in parts)
        away = [[(query - support[2 * label]).abs().sum().item() for label in range(3)] for query in queries]
        answers = [each.index(min(each)) for each in away]
        expected.append(sum(answer == at // 3 for at, answer in enumerate(answers)) / 9)
    torch.testing.assert_close(found.values, torch.tensor(expected))


def test_it_retrieves_by_cosine(images):
    model = Nearest()
    task = Retrieval(3, per_class=4)

    class Plain(nn.Module):
        def forward(self, batch):
            return model.eval()(batch)

    (found,), (expected,) = (evaluate(each, images, [task], episodes=10) for each in (model, Plain()))
    torch.testing.assert_close(found.values, expected.values)
    torch.testing.assert_close(embed_all(model, images).norm(dim=-1), torch.ones(60))


def test_one_episode():
    model = Nearest().eval()
    support, labels, queries = torch.rand(6, 1, 4, 4), torch.tensor([2, 0, 1, 1, 0, 2]), torch.rand(5, 1, 4, 4)
    scores = EmbeddingAnswerer(model).answer(support, labels, queries)
    first = [1, 2, 0]  # of each class
    expected = -(model(queries)[:, None] - model(support)[first]).abs().sum(-1)
    torch.testing.assert_close(scores, expected.detach())


def test_what_can_be_asked(images):
    assert isinstance(Nearest(), HasRule)
    assert not isinstance(Nearest(), Answerer)
    tasks = [Classification(3, 1), Classification(4, 1), Retrieval(3)]
    assert [can_answer(Nearest(), task) for task in tasks] == [True, True, True]
    assert [can_answer(OnlyThree(), task) for task in tasks] == [True, False, False]
    assert [can_answer(nn.Flatten(), task) for task in tasks] == [True, True, True]
    (result,) = evaluate(OnlyThree(), images, [Classification(3, 1, per_class=3)], episodes=4)
    assert isinstance(result, Result)
    assert result.mean == pytest.approx(1 / 3)
