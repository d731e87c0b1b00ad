"""All of the page by keys alone, in a real browser: Tab, arrows, Enter, Space and Escape; no pointer is ever moved."""

import time

import pytest
from browser import every, found, opened, until
from glyph_pictures import drawing

from rankshot import Gallery
from serving import running

pytest.importorskip("selenium")
from selenium.webdriver import ActionChains, Keys

MOST = 80  # stops that are tried on the way to one


@pytest.fixture
def page(browser, handwriting, tmp_path):
    """The page of a new server with a gallery of six drawings."""
    with Gallery(tmp_path / "gallery", handwriting) as gallery:
        for shape in ("cross", "triangle"):
            for seed in range(3):
                path = tmp_path / f"{shape}-{seed}.png"
                path.write_bytes(drawing(shape, seed))
                gallery.add([path], metadata=[{"shape": shape}])
        with (
            running(handwriting, tmp_path / "w", gallery=gallery) as server,
            opened(browser, server, size=(700, 620)) as page,  # so small that much of it has to be scrolled to
        ):
            until(page, lambda: found(page, "#tab-search").is_displayed())
            yield page


def press(page, *keys):
    ActionChains(page).send_keys(*keys).perform()


def here(page):
    return page.switch_to.active_element


SEEN = """
const style = (node) => getComputedStyle(node);
const marked = (node) => style(node).outlineStyle !== "none" && parseFloat(style(node).outlineWidth) >= 2;
const node = document.activeElement, box = node.getBoundingClientRect();
const shown = document.getElementById("status"); // a message lies over the foot of the page, and over nothing else
const free = shown.textContent ? shown.getBoundingClientRect().top : innerHeight;
const isThere = box.width > 0 && box.top >= 0 && box.bottom <= free + 1 && box.left >= 0 && box.right <= innerWidth;
return isThere && (marked(node) || marked(node.closest(".button") ?? node));
"""


def go_to(page, css, back=False):
    """By Tab alone. Wherever the focus is on the way, it can be seen."""
    for _ in range(MOST):
        if page.execute_script("return document.activeElement.matches(arguments[0])", css):
            return here(page)
        if back:
            ActionChains(page).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
        else:
            press(page, Keys.TAB)
        at = here(page)
        assert at.tag_name == "body" or page.execute_script(SEEN), at.get_attribute("outerHTML")
    raise AssertionError(f"{css} cannot be reached by Tab")


def name_of(page):
    return here(page).accessible_name


def test_all_of_it_by_keys_alone(page, tmp_path):
    for name in ("cross", "triangle"):
        go_to(page, "#new-class-name").send_keys(name, Keys.ENTER)
        until(page, lambda n=name: every(page, f"article[aria-label={n}]"))
        files = go_to(page, f"article[aria-label={name}] input.files")
        assert name_of(page) == f"Choose pictures of {name}"
        files.send_keys("\n".join(str(tmp_path / f"{name}-{seed}.png") for seed in range(2)))
        until(page, lambda n=name: len(every(page, f"article[aria-label={n}] .example")) == 2)
        go_to(page, "#new-class-name", back=True)

    # Look at an example, and come back to it
    go_to(page, ".example .look-at")
    press(page, Keys.ENTER)
    until(page, lambda: found(page, "#look").is_displayed())
    press(page, Keys.ESCAPE)
    until(page, lambda: not found(page, "#look").is_displayed())
    assert page.execute_script("return document.activeElement.matches('.look-at')")

    # Delete an example, and undo it: by the shortcut, and by the button
    for undo in ("shortcut", "button"):
        go_to(page, "article[aria-label=cross] .example:nth-child(2) .remove")
        assert name_of(page) == "Remove example 2 of cross"
        press(page, Keys.SPACE)
        until(page, lambda: len(every(page, ".example")) == 3)
        until(page, lambda: name_of(page) == "Remove example 1 of cross")  # the keyboard goes on next to it
        if undo == "shortcut":
            ActionChains(page).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
        else:
            go_to(page, "#undo", back=True)
            assert name_of(page) == "Undo: remove example"
            press(page, Keys.ENTER)
        until(page, lambda: len(every(page, ".example")) == 4)
    until(page, lambda: "Taken back" in found(page, "#status").text)

    # To Recognise and a picture
    go_to(page, "[role=tab]", back=True)
    press(page, Keys.ARROW_RIGHT)
    until(page, lambda: found(page, "#recognise").is_displayed())
    assert here(page).get_attribute("id") == "tab-recognise"
    go_to(page, "#recognise-files").send_keys(str(tmp_path / "triangle-2.png"))
    until(page, lambda: found(page, "#answer").text == "triangle")

    # None of these, and how careful
    go_to(page, "#none-of-these")
    press(page, Keys.SPACE)
    until(page, lambda: "%" in found(page, "#cost").text)
    slider, told = go_to(page, "#careful"), found(page, "#cost").text
    said = slider.get_attribute("aria-valuetext")
    press(page, Keys.END)
    until(page, lambda: slider.get_attribute("aria-valuetext") != said)
    until(page, lambda: found(page, "#cost").text != told)
    press(page, *[Keys.ARROW_LEFT] * 3)
    assert slider.get_attribute("value") == "0.485"

    # To Search, a picture, a hit's neighbours, and back to it
    go_to(page, "[role=tab]", back=True)
    press(page, Keys.END)
    until(page, lambda: found(page, "#search").is_displayed())
    go_to(page, "#search-files").send_keys(str(tmp_path / "cross-2.png"))
    until(page, lambda: len(every(page, "#hits .hit")) == 6)
    go_to(page, "#hits li:nth-child(2) .hit")
    hit = here(page).text
    press(page, Keys.ENTER)
    until(page, lambda: found(page, "#search-title").text.startswith("Most like cross-"))
    assert here(page).get_attribute("id") == "search-title"  # which a screen reader says
    go_to(page, "#search-back", back=False)
    press(page, Keys.ENTER)
    until(page, lambda: found(page, "#search-title").text == "Most like this picture")
    assert here(page).text == hit

    # And to the first view again
    go_to(page, "[role=tab]", back=True)
    press(page, Keys.HOME)
    until(page, lambda: found(page, "#teach").is_displayed())


def test_names_filters_and_what_is_taken_back_by_keys(page):
    go_to(page, "#new-class-name").send_keys("a", Keys.ENTER)
    until(page, lambda: every(page, "article[aria-label=a]"))
    go_to(page, ".rename")
    press(page, Keys.ENTER, "b", Keys.ENTER)  # the name that is there is selected
    until(page, lambda: name_of(page) == "Rename b")
    go_to(page, ".remove-class")
    press(page, Keys.ENTER)
    until(page, lambda: not every(page, "article"))
    until(page, lambda: here(page).get_attribute("id") == "new-class-name")
    go_to(page, "#undo", back=True)
    for left in ("rename class", "add class", None):
        press(page, Keys.SPACE)
        label = f"Undo: {left}" if left else "Undo"
        until(page, lambda to=label: found(page, "#undo").accessible_name == to)
    assert here(page) == found(page, "#undo")  # with nothing left to undo it has the focus still
    press(page, Keys.SPACE)
    until(page, lambda: found(page, "#status").text == "Nothing to undo")

    go_to(page, "[role=tab]", back=True)
    press(page, Keys.END)
    go_to(page, "#search-where").send_keys("shape=cross", Keys.ENTER)
    go_to(page, "#duplicates")
    press(page, Keys.ENTER)
    until(page, lambda: found(page, "#search-title").text == "Near duplicates")
    assert here(page).get_attribute("id") == "search-title"
    go_to(page, ".foot a")  # to the last of the page, and every stop on the way was seen


SLOW_STATE = """
const ask = window.fetch;
window.fetch = async (path, options) => {
  const answer = await ask(path, options);
  if (String(path).endsWith("/state")) await new Promise((resolve) => setTimeout(resolve, 1000));
  return answer;
};
"""


def test_what_is_said_last_is_about_what_was_pressed_last(page):
    """The change may be shown, by the request that waits for changes, before its own answer has come."""
    go_to(page, "#new-class-name").send_keys("a", Keys.ENTER)
    until(page, lambda: every(page, "article[aria-label=a]"))
    page.execute_script(SLOW_STATE)
    go_to(page, "#undo", back=True)
    press(page, Keys.SPACE)
    until(page, lambda: found(page, "#undo").accessible_name == "Undo")
    press(page, Keys.SPACE)
    until(page, lambda: found(page, "#status").text == "Nothing to undo")
    time.sleep(1.5)  # longer than the answer about the first one takes
    assert found(page, "#status").text == "Nothing to undo"


def test_drawing_says_what_to_do_instead(page):
    """A pad is for a pointer. Who has none is told so, and where pictures can be chosen."""
    for view in ("teach", "recognise", "search"):
        said = found(page, f"#{view}-pad").get_attribute("aria-label")
        assert "mouse" in said
        assert "choose pictures" in said.lower()
        assert page.execute_script("return document.getElementById(arguments[0]).tabIndex < 0", f"{view}-pad")
