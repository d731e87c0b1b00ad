"""A real browser, for tests that look at pages."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest


def start():
    """Debian's Chromium without a window; skips where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("needs chromium and chromedriver (.ci/run installs them)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",  # root may not have one
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, Service(driver))


def found(page, css):
    return page.find_element("css selector", css)


def every(page, css):
    return page.find_elements("css selector", css)


def until(page, true):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(page, 15).until(lambda _: true())


def complaints(page):
    """What the console has had to say since it was last asked; an answer of 400 is no fault of the page."""
    said = [each["message"] for each in page.get_log("browser") if each["level"] == "SEVERE"]
    return [each for each in said if " 400 " not in each]


@contextmanager
def opened(browser, server, at="", size=(1200, 900)):
    """The page of a server, light; at the end its console must have been silent."""
    browser.set_window_size(*size)
    prefer(browser, "light")
    browser.get(server.address + at)
    browser.server = server
    yield browser
    said = complaints(browser)
    browser.get("about:blank")  # nobody polls while the server stops
    assert said == []


@contextmanager
def screen(page, width, scheme="light", height=800):
    """As wide as that, and as phones are where it is narrow."""
    prefer(page, scheme)
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def fits(page):
    """Whether nothing has to be scrolled sideways."""
    return page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def contrast(page, css):
    """Of text and the page below it, as WCAG has it."""
    colours = page.execute_script(
        "const below = (node) => !node ? 'rgb(255, 255, 255)'"
        " : getComputedStyle(node).backgroundColor.endsWith(', 0)') ? below(node.parentElement)"
        " : getComputedStyle(node).backgroundColor;"
        "const node = document.querySelector(arguments[0]); return [getComputedStyle(node).color, below(node)];",
        css,
    )

    def light(colour):
        parts = [int(each) / 255 for each in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        red, green, blue = (each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted(map(light, colours))
    return (high + 0.05) / (low + 0.05)


def unnamed(page):
    """The roles of controls and pictures that a screen reader has no name for."""
    roles = {"button", "textbox", "checkbox", "slider", "link", "tab", "img", "image", "region", "DisclosureTriangle"}
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in roles and not node.get("name", {}).get("value")
    ]


def shot(page, name):
    """Into the folder that RANKSHOT_SCREENSHOTS names, for docs/images."""
    if folder := os.environ.get("RANKSHOT_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.save_screenshot(str(Path(folder, f"serve-{name}.png")))


def prefer(browser, scheme):
    """A person who likes it "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
