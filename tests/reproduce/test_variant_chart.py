"""The pictures of signs and batches, drawn as soon as there is json of more than the paper's recipe."""

from reproduce.test_study_tables import write

from rankshot.reproduce.figures import draw_all
from rankshot.reproduce.variant_chart import draw_studies, variants_measured


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
    measured = variants_measured(tmp_path, "omniglot", "batches")
    assert {words: len(runs) for words, runs in measured.items()} == {"16 classes": 2, "64 classes": 1}
    [path] = [path for path in draw_studies(tmp_path, tmp_path) if "batches" in path.name]
    assert path.name == "batches-omniglot.png"
