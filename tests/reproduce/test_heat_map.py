"""The heat map of objectives by metrics, drawn as soon as there is json."""

from reproduce.test_study_tables import write

from rankshot.reproduce.figures import draw_all
from rankshot.reproduce.heat_map import draw_objectives, scaled


def test_an_objective_that_fails_does_not_make_the_others_look_alike():
    shades = scaled((94.5, 93.6, 94.0, 91.0, 15.3))
    assert shades[0] == 1
    assert shades[4] == 0
    assert shades[0] - shades[1] > 0.3
    assert scaled((3.0, 3.0, 3.0)) == [1, 1, 1]


def test_drawn_from_what_is_there(tmp_path):
    from PIL import Image

    assert draw_objectives(tmp_path, tmp_path / "figures") == []
    assert not (tmp_path / "figures").exists()
    write(tmp_path, "objectives/ap/0", 0.4, judged=0.2)
    assert [path.name for path in draw_all(tmp_path, tmp_path / "figures")] == ["objectives-mini-imagenet.png"]
    write(tmp_path, "objectives/rr-fine/0", 0.4, judged=0.1)
    (written,) = draw_objectives(tmp_path, tmp_path / "figures")
    with Image.open(written) as picture:
        assert picture.size[0] > 800
    write(tmp_path, "objectives/ap/0", 0.4, judged=0.2, data="omniglot")
    _, other = draw_objectives(tmp_path, tmp_path / "figures")
    assert other.name == "objectives-omniglot.png"
    again, _ = draw_objectives(tmp_path, tmp_path / "again")
    assert written.read_bytes() == again.read_bytes()
