"""Photographs on the page, in a real browser: small among others, whole where one is looked at, upright everywhere."""

import httpx
import numpy as np
import pytest
from browser import every, fits, found, opened, screen, shot, until
from camera_pictures import COLOURS, photograph
from glyph_pictures import drawing, embedder_of

from rankshot import Gallery
from serving import running

pytest.importorskip("selenium")
from selenium.webdriver import Keys

LARGE = (3000, 2000)


@pytest.fixture(scope="module")
def photographic():
    return embedder_of("conv4-mini-imagenet")


@pytest.fixture
def page(browser, photographic, tmp_path):
    """The page of a new server that sees photographs, with an empty gallery."""
    with (
        Gallery(tmp_path / "gallery", photographic) as gallery,
        running(photographic, tmp_path / "w", gallery=gallery) as server,
        opened(browser, server) as page,
    ):
        page.gallery = gallery
        yield page


def loaded(page, css):
    """(width, height) of a picture's own, once it is there."""
    script = "const e = document.querySelector(arguments[0]); return e?.complete && [e.naturalWidth, e.naturalHeight]"
    size = until(page, lambda: (found := page.execute_script(script, css)) and found[0] and found)
    return tuple(size)


def assert_upright(page, css, kind):
    """As it is drawn on the screen: its colours above and below are where they were before the camera."""
    above, below = page.execute_script(
        "const image = document.querySelector(arguments[0]); const canvas = document.createElement('canvas');"
        "canvas.width = canvas.height = 8; const context = canvas.getContext('2d'); context.drawImage(image, 0, 0, 8, 8);"
        "const mean = (top) => { const found = context.getImageData(0, top, 8, 2).data;"
        "  return [0, 1, 2].map((k) => [...found].filter((_, place) => place % 4 === k).reduce((a, b) => a + b) / 16); };"
        "return [mean(0), mean(6)];",
        css,
    )
    assert np.abs(np.array([above, below]) - COLOURS[kind]).max() < 25


def teach(page, name, contents):
    address = page.server.address + "api/v1/classes"
    made = httpx.post(address, json={"name": name}).json()["id"]
    httpx.post(f"{address}/{made}/examples", files=[("pictures", each) for each in contents], timeout=60)


def test_small_among_others_and_whole_alone(page):
    teach(page, "sunset", [("large.jpg", photograph("sunset", 1, LARGE, 8)), ("drawn.png", drawing("cross", 1))])
    until(page, lambda: len(every(page, ".example")) == 2)
    assert loaded(page, ".example img") == (256, 171)
    assert_upright(page, ".example img", "sunset")
    found(page, ".example .look-at").send_keys(Keys.ENTER)
    until(page, lambda: found(page, "#look").is_displayed())
    assert loaded(page, "#look-picture") == LARGE
    assert_upright(page, "#look-picture", "sunset")
    assert found(page, "#look-name").text == "large.jpg"
    shot(page, "look")
    with screen(page, 360):
        assert fits(page)
        box = found(page, "#look").rect
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(page, lambda: not found(page, "#look").is_displayed())
    assert page.switch_to.active_element == found(page, ".example .look-at")  # where the keyboard was


def test_in_a_gallery(page, tmp_path):
    path = tmp_path / "large.jpg"
    path.write_bytes(photograph("meadow", 1, LARGE, 6))
    page.gallery.add([path])
    page.get(page.server.address + "#search")
    page.refresh()
    query = tmp_path / "query.jpg"
    query.write_bytes(photograph("meadow", 2, (640, 480)))
    found(page, "#search-files").send_keys(str(query))
    until(page, lambda: every(page, "#hits img"))
    assert loaded(page, "#hits img") == (256, 171)
    assert_upright(page, "#hits img", "meadow")
    found(page, "#hits button").click()
    until(page, lambda: found(page, "#search-back").is_displayed())
    found(page, "#search-asked .look-at").click()
    assert loaded(page, "#look-picture") == (1600, 1067)
    assert_upright(page, "#look-picture", "meadow")


def test_taught_and_recognised(page, tmp_path):
    """By files of all sizes, large ones and turned ones among them: the classes are right, and the pictures upright."""
    shapes = [(LARGE, 1), ((600, 800), 6), ((320, 240), 3), ((1024, 768), 8)]
    for kind in COLOURS:
        paths = []
        for seed, (size, orientation) in enumerate(shapes):
            paths.append(tmp_path / f"{kind}-{seed}.jpg")
            paths[-1].write_bytes(photograph(kind, seed, size, orientation))
        found(page, "#new-class-name").send_keys(kind, Keys.ENTER)
        until(page, lambda k=kind: every(page, f"article[aria-label={k}]"))
        found(page, f"article[aria-label={kind}] input.files").send_keys("\n".join(map(str, paths)))
        until(page, lambda k=kind: len(every(page, f"article[aria-label={k}] .example")) == len(shapes))
    assert every(page, ".wrong") == []
    for kind in COLOURS:
        for number, (size, _) in enumerate(shapes, 1):
            css = f"article[aria-label={kind}] .example:nth-child({number}) img"
            page.execute_script("document.querySelector(arguments[0]).scrollIntoView()", css)  # it is only loaded then
            assert loaded(page, css) == tuple(round(side * 256 / max(size)) for side in size)
            assert_upright(page, css, kind)
    page.execute_script("scrollTo(0, 0)")
    shot(page, "photographs")
    found(page, "#tab-recognise").send_keys(Keys.ENTER)
    until(page, lambda: found(page, "#recognise").is_displayed())
    for kind, size, orientation in (("meadow", LARGE, 6), ("sunset", (500, 900), 8), ("meadow", (200, 300), 1)):
        query = tmp_path / "query.jpg"
        query.write_bytes(photograph(kind, 9, size, orientation))
        found(page, "#recognise-files").send_keys(str(query))
        until(page, lambda k=kind: found(page, "#answer").text == k)
        assert loaded(page, "#query") == size
        assert_upright(page, "#query", kind)
        loaded(page, "#deciding img")
        assert_upright(page, "#deciding img", kind)
    shot(page, "photograph-recognised")
    both = [tmp_path / f"{kind}-0.jpg" for kind in COLOURS]
    found(page, "#recognise-files").send_keys("\n".join(map(str, both)))
    until(page, lambda: [each.text for each in every(page, ".row-answer")] == list(COLOURS))
