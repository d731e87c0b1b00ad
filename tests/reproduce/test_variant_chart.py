"""The pictures of signs and batches, drawn as soon as there is json of more than the paper's recipe."""

from reproduce.test_study_tables import write

from rankshot.reproduce.figures import draw_all
from rankshot.reproduce.published import COLUMNS
from rankshot.reproduce.variant_chart import draw, draw_studies, lines_measured, reach


def test_drawn_from_what_is_there(tmp_path):
    from PIL import Image

    write(tmp_path, "paper/map-dlm/0", 0.4)
    assert draw_studies(tmp_path, tmp_path / "figures") == []
    assert not (tmp_path / "figures").exists()
    write(tmp_path, "signs/both/0", 0.41)
    (written,) = draw_studies(tmp_path, tmp_path / "figures")
    assert written.name == "signs-mini-imagenet.png"
    with Image.open(written) as picture:
        assert picture.size[0] > 800
    assert written in draw_all(tmp_path, tmp_path / "figures")
    (again,) = draw_studies(tmp_path, tmp_path / "again")
    assert written.read_bytes() == again.read_bytes()


def test_a_line_a_variant_and_a_point_a_seed(tmp_path):
    for seed in (0, 1):
        write(tmp_path, f"objectives/ap/{seed}", 0.5, judged=0.2, data="omniglot")
    write(tmp_path, "batches/64-classes/1", 0.52, data="omniglot")
    write(tmp_path, "batches/16-classes-near-fine/0", 0.1, data="omniglot")  # what it is compared with is not there yet
    measured = lines_measured(tmp_path, "omniglot", "batches")
    assert [(line.words, len(line.runs), len(line.base)) for line in measured] == [
        ("16 classes", 2, 2),
        ("64 classes", 1, 2),
        ("16 classes, all of them near the first; alpha 1, epsilon 0.003", 1, 0),
    ]
    alone = draw(measured, COLUMNS["omniglot"], tmp_path / "alone.png")
    left_out = draw(measured[:2], COLUMNS["omniglot"], tmp_path / "left-out.png")
    assert alone.read_bytes() != left_out.read_bytes()
    write(tmp_path, "objectives/ap-fine/0", 0.4, judged=0.2, data="omniglot")
    *_, usual, near = lines_measured(tmp_path, "omniglot", "batches")
    assert usual.runs == usual.base == near.base
    assert near.words.startswith("16 classes, all of them near the first; alpha 1")
    [path] = [path for path in draw_studies(tmp_path, tmp_path) if "batches" in path.name]
    assert path.name == "batches-omniglot.png"


def test_what_is_far_from_the_others_is_drawn_too(tmp_path):
    """On either side; and its place is not what all others are drawn by."""
    for name, mean in (("objectives/ap/0", 0.5), ("signs/both/0", 0.51), ("signs/negative-1/0", 0.1)):
        write(tmp_path, name, mean, judged=0.2, data="omniglot")
    lines = lines_measured(tmp_path, "omniglot", "signs")
    tasks = COLUMNS["omniglot"]
    usual = draw([line for line in lines if "negative" not in line.words], tasks, tmp_path / "usual.png").read_bytes()
    below = draw(lines, tasks, tmp_path / "below.png").read_bytes()
    write(tmp_path, "signs/negative-1/0", 0.9, data="omniglot")
    above = draw(lines_measured(tmp_path, "omniglot", "signs"), tasks, tmp_path / "above.png").read_bytes()
    assert len({usual, below, above}) == 3
    assert reach([0.0, 1.0, -40.0]) == reach([0.0, 1.0, 400.0]) == 10
