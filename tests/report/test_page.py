"""report.html in a real browser: complete, self-contained, readable in light and dark and on a telephone."""

import re

import browser as real_browser
import pytest

from rankshot.report import measure, measure_untrained, protocol_for, write_report

CONTRAST = """
const lightness = text => {
  const parts = text.match(/[0-9.]+/g).slice(0, 3).map(each => each / 255)
    .map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
}
const behind = element => {
  for (let each = element; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor
    if (!/, 0\\)$/.test(colour)) return colour
  }
}
return [...document.querySelectorAll("h1, h2, p, td, th, figcaption, .key, summary, footer, svg text, i")].map(element => {
  const style = getComputedStyle(element)
  const ink = lightness(element.tagName == "text" ? style.fill : style.color), paper = lightness(behind(element))
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)
})
"""


@pytest.fixture(scope="module")
def columns(runs):
    protocol = protocol_for(runs, ways=(5, 20), shots=(1,), episodes=20)
    columns = [
        measure_untrained(runs[0], protocol),
        measure(runs[0], protocol, "map-dlm"),
        measure(runs[1], protocol, "siamese"),
    ]
    write_report(runs[0] / "report.html", columns, protocol)
    return columns


@pytest.fixture(scope="module")
def browser(columns, runs):
    browser = real_browser.start()
    yield browser
    browser.quit()


@pytest.fixture(params=["light", "dark"])
def page(request, browser, runs):
    real_browser.prefer(browser, request.param)
    browser.set_window_size(1000, 900)
    browser.get(f"file://{runs[0] / 'report.html'}")
    return browser


def test_everything_is_there(page, columns):
    ask = page.execute_script
    assert ask("return document.title") == "map-dlm on glyphs"
    assert len(ask("return [...document.querySelectorAll('section h2')].map(each => each.textContent)")) == 6
    shown = ask("return [...document.querySelectorAll('section:first-of-type tbody tr')].map(each => each.innerText)")
    for row, results in zip(shown, zip(*(each.results for each in columns), strict=True), strict=True):
        assert all(f"{100 * each.mean:.1f} ± {100 * each.interval:.1f}" in row for each in results)
    assert ask("return document.querySelectorAll('.chart svg').length") == 4 + 1 + 2
    assert ask("return document.querySelectorAll('.chart:first-child polyline').length") == 2  # one a run
    assert ask("return document.querySelectorAll('.retrievals tbody tr').length") == 8
    assert ask("return document.querySelectorAll('.map image').length") == 160


def test_of_networks_without_a_run(columns, runs, tmp_path):
    protocol = protocol_for(runs, ways=(5,), shots=(1,), episodes=2)
    write_report(tmp_path / "report.html", columns[:1], protocol)
    text = (tmp_path / "report.html").read_text()
    assert "<title>untrained on glyphs" in text
    assert re.findall("<section><h2>(.*?)</h2>", text) == [
        "How good is it?", "Which classes does it mix up?", "What does it retrieve?", "What lies near what?",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="there is nothing to report on: give at least one network that was measured"):
        write_report(tmp_path / "report.html", [], protocol)


def test_nothing_is_fetched_and_nothing_fails(page, runs):
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').filter(e => !/^data:/.test(e.name))") == []
    assert "://" not in (runs[0] / "report.html").read_text().replace("http://www.w3.org", "")
    broken = "return [...document.images].filter(each => !each.complete || !each.naturalWidth).length"
    assert page.execute_script(broken) == 0


def test_it_can_be_read(page):
    """Every text stands out from what is behind it, by the ratio that accessibility guidelines ask for."""
    ratios = page.execute_script(CONTRAST)
    assert len(ratios) > 100
    assert min(ratios) >= 4.5


def test_light_is_light_and_dark_is_dark(browser, runs):
    def background(scheme):
        real_browser.prefer(browser, scheme)
        browser.get(f"file://{runs[0] / 'report.html'}")
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    assert background("light") > 230
    assert background("dark") < 50


def test_right_and_wrong_differ_by_more_than_colour(page):
    styles = page.execute_script(
        "return ['right', 'wrong'].map(each => getComputedStyle(document.querySelector('.retrievals td.' + each)))"
        ".map(each => [each.borderTopStyle, each.borderTopColor])"
    )
    (one_line, one_colour), (other_line, other_colour) = styles
    assert one_line != other_line
    assert one_colour != other_colour


def test_on_a_telephone_nothing_sticks_out(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
