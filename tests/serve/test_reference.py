"""The page about the API in a real browser: every path is on it, and its lines for a shell do what they say."""

import json
import subprocess

import httpx
import pytest
from browser import contrast, every, fits, found, opened, screen, shot, unnamed, until

from rankshot import Gallery
from rankshot.serve.server import Place
from serving import running

pytest.importorskip("selenium")
from selenium.webdriver import ActionChains, Keys

TOKEN = "a-token-for-tests-0123456789"


@pytest.fixture
def page(browser, handwriting, tmp_path):
    """The page about the API of a server with a gallery."""
    with (
        Gallery(tmp_path / "gallery", handwriting) as gallery,
        running(handwriting, tmp_path / "w", gallery=gallery) as server,
        opened(browser, server, "api") as page,
    ):
        until(page, lambda: every(page, ".operation"))
        yield page


def described(page):
    return httpx.get(page.server.address + "api/v1/openapi.json").json()


def line_of(page, method, path):
    title = f"{method} {path}"
    (section,) = [each for each in every(page, ".operation") if found(each, "h2").text == title]
    return found(section, ".curl pre").text


def test_every_path_is_there_with_all_that_is_known_of_it(page):
    known = {
        f"{method.upper()} {path}": operation
        for path, methods in described(page)["paths"].items()
        for method, operation in methods.items()
    }
    shown = {found(each, "h2").text: each for each in every(page, ".operation")}
    assert shown.keys() == known.keys()
    assert len(every(page, "#contents a")) == len(known)
    page.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    for title, operation in known.items():
        text, method = shown[title].text, title.partition(" ")[0]
        assert operation["description"].replace("`", "") in text, "a sentence for each"
        assert set(text.split()) >= {each["name"] for each in operation.get("parameters", [])}
        assert found(shown[title], ".curl pre").text.startswith("curl ")
        assert ("Body" in text) == ("requestBody" in operation), method
        assert all(status in text for status in operation["responses"])
    state = shown["GET /api/v1/state"].text
    assert '"classes": [{' in state
    assert '"undo": string or null,' in state
    assert "What undo would take back." in state
    shot(page, "api")


def test_lines_for_a_shell(page, tmp_path):
    """As they are copied, with a name where one is asked for."""

    def run(method, path, **given):
        line = line_of(page, method, path)
        for name, value in given.items():
            assert name in line
            line = line.replace(name, value)
        done = subprocess.run(["bash", "-ec", line], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    made = run("POST", "/api/v1/classes", NAME="it is 1")["id"]
    run("PATCH", "/api/v1/classes/{class_id}", CLASS_ID=made, NAME="2")
    assert run("GET", "/api/v1/state")["classes"] == [{"id": made, "name": "2", "examples": []}]
    run("DELETE", "/api/v1/classes/{class_id}", CLASS_ID=made)
    assert run("POST", "/api/v1/undo")["undone"] == "remove class"
    assert line_of(page, "GET", "/api/v1/classifier.zip").endswith(" -o classifier.zip")
    assert line_of(page, "POST", "/api/v1/classify").endswith(" -F pictures=@picture.png")


@pytest.mark.parametrize("way", ["clipboardSanitizedWrite", "midi"])  # by the browser's clipboard, or the old way
def test_a_line_is_copied_by_keys(page, way):
    origin = page.server.address.rstrip("/")
    page.execute_cdp_cmd("Browser.grantPermissions", {"origin": origin, "permissions": ["clipboardReadWrite", way]})
    for _ in range(100):
        ActionChains(page).send_keys(Keys.TAB).perform()
        if "copy" in page.switch_to.active_element.get_attribute("class"):
            break
    assert page.switch_to.active_element.accessible_name == "Copy curl for GET /api/v1/state"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    until(page, lambda: found(page, "#status").text == "Copied")
    copied = page.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    assert copied == f"curl {origin}/api/v1/state"
    ActionChains(page).send_keys(Keys.TAB, Keys.SPACE).perform()  # on to the answers, which open
    until(page, lambda: found(page, ".operation details").get_attribute("open"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(page, scheme):
    with screen(page, 360, scheme):
        page.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
        assert fits(page)
        for css in ("body", ".method", ".curl code", "details code", ".operation .soft", ".contents a"):
            assert contrast(page, css) >= 4.5, css
        assert unnamed(page) == []
        shot(page, f"api-{scheme}-360")


def test_behind_the_token(browser, handwriting, tmp_path):
    with running(handwriting, tmp_path / "w", Place(port=0, token=TOKEN)) as server:
        assert httpx.get(server.address + "api").status_code == 401
        assert httpx.get(server.address + "page/reference.js").status_code == 401
        browser.get(server.address_with_token)
        found(browser, ".foot a").click()  # from the page to this one
        until(browser, lambda: every(browser, ".operation"))
        assert found(browser, "#token").is_displayed()
        line = found(browser, "#get-api-v1-state .curl pre").text
        browser.get("about:blank")
        done = subprocess.run(["bash", "-ec", line.replace("TOKEN", TOKEN)], capture_output=True, text=True)
        assert json.loads(done.stdout)["classes"] == []
