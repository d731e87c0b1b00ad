"""What is framed as right is right, in the order of similarity."""

import re

import torch
from oracles import metric_of

import rankshot
from rankshot import data
from rankshot.fewshot import Retrieval, draw_episodes, embed_all
from rankshot.report.picture import data_uri
from rankshot.report.retrievals import retrievals, spread


def test_against_a_plain_ranking(runs):
    model, images = rankshot.from_pretrained(runs[0]), data.load("glyphs", "test")
    shown = retrievals(model, images, seed=4)
    rows = re.findall(r"<tr>(.*?)</tr>", shown.split("<tbody>")[1])
    assert len(rows) == 8

    drawn = draw_episodes(torch.from_numpy(images.labels), Retrieval(20), 1, seed=4).flatten()
    embeddings = embed_all(model, images, drawn)
    by_picture = {data_uri(images.images[index]): place for place, index in enumerate(drawn.tolist())}
    precisions = []
    for row in rows:
        query, *found = [by_picture[uri] for uri in re.findall(r'<img src="(.*?)"', row)]
        similarity = embeddings @ embeddings[query]
        others = [place for place in range(200) if place != query]
        ranked = sorted(others, key=lambda place: -similarity[place].item())
        assert torch.allclose(similarity[found], similarity[ranked[:9]])
        verdicts = [images.labels[drawn[place]] == images.labels[drawn[query]] for place in found]
        assert re.findall(r"<td class=(\w+)", row) == ["query", *("right" if each else "wrong" for each in verdicts)]
        assert re.findall(r"<i>(.)</i>", row) == ["✓" if each else "✗" for each in verdicts]
        precision = metric_of((images.labels[drawn[place]] == images.labels[drawn[query]] for place in ranked), "ap")
        assert f"AP {100 * precision:.0f} %" in row
        precisions.append(precision)
    assert precisions == sorted(precisions)


def test_spread_is_from_the_worst_to_the_best():
    values = torch.rand(200, generator=torch.Generator().manual_seed(0))
    chosen = values[spread(values)]
    assert chosen.tolist() == sorted(chosen.tolist())
    assert chosen[0] == values.min()
    assert chosen[-1] == values.max()
    assert len(spread(torch.rand(3))) == 3
