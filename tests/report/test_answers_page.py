"""The page of what a classifier mixes up, from real pictures, in a real browser."""

import browser as real_browser
import numpy as np
import pytest
from PIL import Image

from rankshot.cli.main import main
from rankshot.gallery import Embedder
from rankshot.gallery.answers import Answered
from rankshot.report.mistakes import MOST, mistakes

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 40), "blue": (30, 40, 210)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        for number in range(5):
            place = tmp_path / ("support" if number < 2 else "new") / name
            place.mkdir(parents=True, exist_ok=True)
            seen = COLOURS["blue"] if (name, number) == ("green", 4) else colour  # one that is taken for blue
            pixels = np.clip(np.array(seen) + random.integers(-25, 25, (70, 90, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command():
    return ["classify", "new", "--support", "support", "--model", "conv4-cub", "--rule", "nearest", "--report", "page.html"]


def test_from_the_shell(folder, command, capsys):
    assert main(command) == 0
    assert "rankshot: which classes are mixed up, in pictures: page.html" in capsys.readouterr().err
    page = (folder / "page.html").read_text()
    assert "88.9 % right: 8 of 9 images, by conv4-cub with 6 examples of 3 classes" in page
    assert "<b>green</b> taken for <b>blue</b>" in page
    assert page.count("<figure>") == 1
    assert page.count("<rect ") == 2 * 36
    assert "http" not in page.replace("http://www.w3.org", "")


def test_a_page_that_cannot_be_written_is_told_first(folder, command, capsys):
    for page, told in (("missing/page.html", "there is no folder missing"), ("page.pdf", "writes a page, NAME.html")):
        command[-1] = page
        assert main(command) in (1, 2)
        seen = capsys.readouterr()
        assert told in seen.err
        assert seen.out == ""  # nothing was classified


def test_none_of_these_has_no_probability(folder, command, capsys):
    (folder / "new" / "none of these").mkdir()
    Image.new("RGB", (90, 70), (250, 250, 250)).save(folder / "new" / "none of these" / "1.png")
    assert main([*command, "--threshold", "1.5"]) == 0  # nothing is as near as that
    lines = capsys.readouterr().out.splitlines()[1:]
    assert all(line.split(",")[1:3] == ["none of these", ""] for line in lines)
    page = (folder / "page.html").read_text()
    assert "10.0 % right: 1 of 10 images" in page
    assert "taken for <b>none of these</b><br>" in page


def test_no_folder_tells_the_class(folder, command, capsys):
    (folder / "new").rename(folder / "some")
    for name in COLOURS:
        (folder / "some" / name).rename(folder / "some" / f"{name} things")
    command[1] = "some"
    assert main(command) == 0
    assert "no page is written: none of the images lies in a folder named as a class" in capsys.readouterr().err
    assert not (folder / "page.html").exists()


def test_an_example_that_is_gone(folder):
    embedder = Embedder("conv4-cub")
    wrong = [Answered(f"new/green/{number}.png", "green", "blue", 0.5, "gone.png") for number in (2, 3)]
    html = mistakes(wrong, embedder)
    assert html.count("<img ") == 2  # without what it is like, and so without a map
    assert "<svg" not in html
    many = [wrong[0]._replace(image="gone.png", probability=number / 100) for number in range(20)]
    assert f"{MOST} of 20 mistakes" in mistakes(many, embedder)
    assert mistakes([], embedder) == "<p>None.</p>"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(folder, command, scheme):
    assert main(command) == 0
    browser = real_browser.start()
    try:
        real_browser.prefer(browser, scheme)
        for width in (1000, 400):
            browser.set_window_size(width, 900)
            browser.get(f"file://{folder / 'page.html'}")
            ask = browser.execute_script
            assert ask("return [...document.images].every(each => each.complete && each.naturalWidth > 0)")
            assert ask("return document.documentElement.scrollWidth <= window.innerWidth")
            over = "const [image, map] = document.querySelector('.looked').children;"
            assert ask(f"{over} return Math.abs(image.clientHeight - map.clientHeight) <= 1")
        assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    finally:
        browser.quit()
