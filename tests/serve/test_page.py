"""The page in a real browser: drawn with a pointer, taught, recognised, undone, in two tabs, dark, on a phone."""

import base64

import browser as real_browser
import pytest
from browser import complaints, contrast, every, fits, found, opened, screen, shot, unnamed, until
from glyph_pictures import SHAPES, drawing

from serving import running

pytest.importorskip("selenium")
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from rankshot import Gallery


@pytest.fixture
def page(browser, handwriting, tmp_path):
    """The page of a new server, wide and light."""
    with running(handwriting, tmp_path / "w") as server, opened(browser, server) as page:
        yield page


def draw(page, css, shape, seed):
    """With a pen, stroke by stroke."""
    random = [((7 * seed + 3 * k) % 11 - 5) / 250 for k in range(50)]
    pad = found(page, css)
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", pad)
    width, height = pad.rect["width"], pad.rect["height"]
    for stroke in SHAPES[shape]:
        actions = ActionChains(page, duration=20)
        for number, (x, y) in enumerate(stroke):
            x, y = x + random[number], y + random[number + 20]
            actions.move_to_element_with_offset(pad, int((x - 0.5) * width), int((y - 0.5) * height))
            if not number:
                actions.click_and_hold()
        actions.release().perform()


def add_class(page, name):
    field = found(page, "#new-class-name")
    field.clear()
    field.send_keys(name, Keys.ENTER)
    until(page, lambda: name in [each.text for each in every(page, "article.class .class-name")])


def card(page, name):
    return next(
        each for each in every(page, "article.class") if each.find_element(By.CSS_SELECTOR, ".class-name").text == name
    )


def examples_of(page, name):
    return card(page, name).find_elements(By.CSS_SELECTOR, ".example")


def teach_by_drawing(page, name, seeds):
    add_class(page, name)
    for number, seed in enumerate(seeds):
        card(page, name).find_element(By.CSS_SELECTOR, "button.draw").click()
        draw(page, "#teach-pad", name, seed)
        found(page, "#add-drawing").click()
        until(page, lambda n=number: len(examples_of(page, name)) == n + 1)


def teach_by_api(page, shapes=("cross", "stairs", "triangle")):
    import httpx

    for shape in shapes:
        made = httpx.post(f"{page.server.address}api/v1/classes", json={"name": shape}).json()["id"]
        files = [("pictures", (f"{shape}-{seed}.png", drawing(shape, seed))) for seed in (1, 2)]
        httpx.post(f"{page.server.address}api/v1/classes/{made}/examples", files=files)


def recognise(page):
    found(page, "#tab-recognise").click()
    until(page, lambda: found(page, "#recognise").is_displayed())


def test_drawn_taught_and_recognised(page, browser):
    until(page, lambda: found(page, "#teach-empty").is_displayed())
    for name in ("cross", "stairs", "triangle"):
        teach_by_drawing(page, name, (1, 2))
    shot(page, "teach")
    recognise(page)
    draw(page, "#recognise-pad", "stairs", 5)
    until(page, lambda: "stairs" in found(page, "#answer").text)
    assert len(every(page, "#bars > *")) == 3
    deciding = every(page, "#deciding img")
    until(page, lambda: all(page.execute_script("return arguments[0].naturalWidth > 0", each) for each in deciding))
    assert "stairs" in found(page, "#deciding").text
    shot(page, "recognise")
    page.refresh()  # and everything is there again
    found(page, "#tab-teach").click()
    until(page, lambda: len(every(page, ".example")) == 6)


def test_the_next_drawing_need_not_wait_for_the_last_one(page):
    """Drawn while the one before is on its way to the server, which takes its time; what fails comes back."""
    add_class(page, "cross")
    slow = "const send = window.fetch; window.fetch = (...all) => new Promise((go) => setTimeout(go, 1500)).then(() => {0})"
    page.execute_script(slow.replace("{0}", "send(...all)"))
    for seed in (1, 2):
        draw(page, "#teach-pad", "cross", seed)
        found(page, "#add-drawing").click()
    assert not found(page, "#add-drawing").is_enabled()
    until(page, lambda: len(examples_of(page, "cross")) == 2)
    page.execute_script("window.fetch = () => Promise.reject(new TypeError('away'))")
    draw(page, "#teach-pad", "cross", 3)
    found(page, "#add-drawing").click()
    until(page, lambda: found(page, "#alert").is_displayed())
    until(page, lambda: found(page, "#add-drawing").is_enabled())  # it is on the pad again
    assert len(examples_of(page, "cross")) == 2


def test_from_the_pad_to_the_first_class(page):
    until(page, lambda: found(page, "#target").text == "Add a class first.")
    found(page, "#target button").click()
    assert page.switch_to.active_element.get_attribute("id") == "new-class-name"


def test_a_picture_dropped_on_the_pad_goes_to_the_chosen_class(page):
    pad, files = found(page, "#teach-pad"), [("dropped.png", base64.b64encode(drawing("cross", 1)).decode())]
    page.execute_script(DROP, pad, files)
    until(page, lambda: "Press ‘Draw’ on the class that the picture is for" in found(page, "#alert").text)
    add_class(page, "cross")
    page.execute_script(DROP, pad, files)
    until(page, lambda: len(examples_of(page, "cross")) == 1)


def test_none_of_these(page):
    teach_by_api(page)
    recognise(page)
    found(page, "#none-of-these").click()
    until(page, lambda: "%" in found(page, "#cost").text)
    draw(page, "#recognise-pad", "line", 1)
    until(page, lambda: "none of these" in found(page, "#answer").text.lower())
    shot(page, "none-of-these")


def test_files_deleted_and_undone_in_two_tabs(page, tmp_path):
    """What one tab does, the other shows."""
    paths = []
    for seed in (1, 2, 3):
        paths.append(tmp_path / f"cross-{seed}.png")
        paths[-1].write_bytes(drawing("cross", seed))
    add_class(page, "cross")
    card(page, "cross").find_element(By.CSS_SELECTOR, "input.files").send_keys("\n".join(map(str, paths)))
    until(page, lambda: len(examples_of(page, "cross")) == 3)
    first = page.current_window_handle
    page.switch_to.new_window("tab")
    try:
        page.get(page.server.address)
        until(page, lambda: len(every(page, ".example")) == 3)
        every(page, ".example button.remove")[0].click()
        until(page, lambda: len(every(page, ".example")) == 2)
        page.switch_to.window(first)
        until(page, lambda: len(every(page, ".example")) == 2)
        found(page, "#undo").click()
        until(page, lambda: len(every(page, ".example")) == 3)
        page.switch_to.window(page.window_handles[1])
        until(page, lambda: len(every(page, ".example")) == 3)
    finally:
        page.switch_to.window(page.window_handles[1])
        page.close()
        page.switch_to.window(first)


DROP = """
const [target, files] = arguments;
const transfer = new DataTransfer();
for (const [name, content] of files) {
  const bytes = Uint8Array.from(atob(content), c => c.charCodeAt(0));
  transfer.items.add(new File([bytes], name, {type: "image/png"}));
}
for (const kind of ["dragenter", "dragover", "drop"])
  target.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: transfer}));
"""


def test_several_files_dropped_give_a_table_and_csv(page):
    teach_by_api(page)
    recognise(page)
    files = [(f"{shape}.png", base64.b64encode(drawing(shape, 9)).decode()) for shape in ("cross", "triangle")]
    page.execute_script(DROP, found(page, "#asking"), files)
    until(page, lambda: len(every(page, "#answers-table tbody tr")) == 2)
    rows = [row.text for row in every(page, "#answers-table tbody tr")]
    assert "cross" in rows[0]
    assert "triangle" in rows[1]
    assert found(page, "#csv").is_displayed()
    shot(page, "several")


def test_an_example_in_the_wrong_class_is_marked(page):
    teach_by_api(page, ("cross", "triangle"))
    until(page, lambda: len(every(page, ".example")) == 4)
    content = [("odd.png", base64.b64encode(drawing("triangle", 8)).decode())]
    page.execute_script(DROP, card(page, "cross"), content)
    until(page, lambda: any("triangle" in each.text for each in every(page, ".example .wrong")))
    shot(page, "review")


def test_search_in_a_gallery(browser, handwriting, tmp_path):
    with Gallery(tmp_path / "gallery", handwriting) as gallery:
        for shape in ("cross", "stairs", "triangle"):
            for seed in range(4):
                path = tmp_path / f"{shape}-{seed}.png"
                path.write_bytes(drawing(shape, seed))
                gallery.add([path], metadata=[{"shape": shape, "seed": seed}])
        with running(handwriting, tmp_path / "w", gallery=gallery) as server:
            browser.set_window_size(1200, 900)
            real_browser.prefer(browser, "light")
            browser.get(server.address)
            until(browser, lambda: found(browser, "#tab-search").is_displayed())
            found(browser, "#tab-search").click()
            draw(browser, "#search-pad", "triangle", 6)
            until(browser, lambda: len(every(browser, "#hits img")) == 12)
            assert "triangle" in every(browser, "#hits > *")[0].text
            shot(browser, "search")
            found(browser, "#search-where").send_keys("shape=cross, seed=1", Keys.ENTER)
            until(browser, lambda: len(every(browser, "#hits img")) == 1)
            assert "cross-1.png" in found(browser, "#hits").text
            found(browser, "#hits button").click()  # to those that are like it
            until(browser, lambda: found(browser, "#search-back").is_displayed())
            said = complaints(browser)
            browser.get("about:blank")
    assert said == []


def test_metadata_of_pictures_that_are_added(browser, handwriting, tmp_path):
    """Given on the page, shown with the hits, and filtered by."""
    paths = [tmp_path / f"{shape}.png" for shape in ("cross", "triangle")]
    for path in paths:
        path.write_bytes(drawing(path.stem, 1))
    with (
        Gallery(tmp_path / "gallery", handwriting) as gallery,
        running(handwriting, tmp_path / "w", gallery=gallery) as server,
    ):
        browser.get(server.address + "#search")
        for path, notes in zip(paths, ("colour=red, size=3", 'colour="dark blue", size=4'), strict=True):
            found(browser, "#add-notes").clear()
            found(browser, "#add-notes").send_keys(notes)
            found(browser, "#add-pictures").send_keys(str(path))
            until(browser, lambda: "added to the gallery" in found(browser, "#status").text)
            until(browser, lambda p=path: str(paths.index(p) + 1) in found(browser, "#gallery-count").text)
        assert [each.metadata for each in gallery.items()] == [
            {"colour": "red", "size": 3, "name": "cross.png"},
            {"colour": "dark blue", "size": 4, "name": "triangle.png"},
        ]
        found(browser, "#search-files").send_keys(str(paths[0]))
        until(browser, lambda: len(every(browser, "#hits img")) == 2)
        assert "colour: red · size: 3" in every(browser, "#hits li")[0].text
        found(browser, "#search-where").send_keys("colour=dark blue, size=4", Keys.ENTER)
        until(browser, lambda: len(every(browser, "#hits img")) == 1)
        assert "triangle.png" in found(browser, "#hits").text
        shot(browser, "metadata")
        for bad, why in (("colour", "cannot be read"), ("name=x", "what the file is called")):
            found(browser, "#add-notes").clear()
            found(browser, "#add-notes").send_keys(bad)
            found(browser, "#add-pictures").send_keys(str(paths[0]))
            until(browser, lambda w=why: w in found(browser, "#alert").text)
        assert len(gallery) == 2
        with screen(browser, 360):
            assert fits(browser)
            assert unnamed(browser) == []
        said = complaints(browser)
        browser.get("about:blank")
    assert said == []


def test_a_name_is_never_markup(page):
    add_class(page, "<img src=x onerror=alert(1)>")
    assert every(page, "article.class .class-name img") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_fits_and_can_be_read(page, scheme, width):
    teach_by_api(page)
    with screen(page, width, scheme):
        for view in ("teach", "recognise"):
            found(page, f"#tab-{view}").click()
            until(page, lambda v=view: found(page, f"#{v}").is_displayed())
            until(page, lambda v=view: v == "recognise" or len(every(page, ".example")) == 6)
            assert fits(page)
            assert contrast(page, "body") >= 7
            shot(page, f"{view}-{scheme}-{width}")


def test_every_control_has_a_name(page):
    teach_by_api(page)
    until(page, lambda: len(every(page, ".example")) == 6)
    assert unnamed(page) == []
