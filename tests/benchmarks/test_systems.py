"""The short table of the paper's rows, from as many seeds as there are."""

from benchmarks.tables import systems


def test_the_head_tells_how_many_seeds(monkeypatch):
    monkeypatch.setattr(systems, "means", lambda runs, norm, tasks: [100.0 * len(runs)])
    monkeypatch.setattr(systems, "seeds_in", lambda results, row, norm: [{}] * 3)
    assert systems.paper_in_short().startswith("| mean of 3 seeds, % | mAP-DLM, published |")
    monkeypatch.setattr(systems, "seeds_in", lambda results, row, norm: [{}] * ("siamese" in row) * 2)
    assert systems.paper_in_short().startswith("| mean of 2 seeds, % |")
    assert systems.paper_in_short().splitlines()[2].endswith("| 200.0 | – | – | – |")
