"""The report's page in a real browser: it works, says nothing on the console, and asks nobody for anything."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness.browser
import pytest
from doubles.in_process import evidence_json
from harness.browser import chromium, theme_is
from selenium import webdriver
from selenium.webdriver.common.by import By

from pyspark_iceberg_crypto import VerifyReport, VerifyTablesReport

pytestmark = pytest.mark.nightly

REPORT = VerifyReport.of(evidence_json())
LONG = "lake.a_very_long_name_of_a_namespace." + "orders_of_customers_by_region_" * 4
MANY = VerifyTablesReport(
    "lake",
    [
        REPORT,
        VerifyReport.of(
            evidence_json(
                table=LONG, key_id=f"arn:aws:kms:{'1' * 60}", plaintext_metadata=f"s3://b/{LONG}"
            )
        ),
    ],
    [{"table": LONG, "problem": "p", "hint": "h"}],
    left_out=[{"table": LONG, "encrypted": False}],
)
BOTH = VerifyTablesReport(
    "lake.db", [REPORT, REPORT], [{"table": "t", "problem": "p", "hint": "h"}]
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def opened(browser: webdriver.Chrome, page: str, file: Path, theme: str) -> list[str]:
    """Open a page, and return the addresses that it made the browser ask for."""
    file.write_text(page, encoding="utf-8")
    theme_is(browser, theme)
    return harness.browser.opened(browser, file.as_uri())


def colour(browser: webdriver.Chrome, name: str, element: str = "body") -> str:
    script = "return getComputedStyle(document.querySelector(arguments[1]))[arguments[0]]"
    return str(browser.execute_script(script, name, element))


@pytest.mark.parametrize("name", ["one", "both"])
def test_the_page_in_light_and_dark(browser: webdriver.Chrome, tmp_path: Path, name: str) -> None:
    page = {"one": REPORT, "both": BOTH}[name].to_html()
    file = tmp_path / "report.html"
    grounds = {}
    for theme in ("light", "dark"):
        assert opened(browser, page, file, theme) == [file.as_uri()]
        grounds[theme] = colour(browser, "backgroundColor")
        assert colour(browser, "fill", "svg .good-bar") not in ("none", "rgb(0, 0, 0)")
    assert grounds == {"light": "rgb(244, 245, 247)", "dark": "rgb(14, 18, 24)"}, (
        "the style applies"
    )
    assert browser.title.startswith("Verification of lake.db")
    verdict = browser.find_element(By.CSS_SELECTOR, ".verdict strong").text
    assert verdict.startswith("✗ ")
    assert browser.find_elements(By.CSS_SELECTOR, "script, img, iframe, object") == []
    text = browser.find_element(By.TAG_NAME, "main").text
    assert "<script>alert(1)</script>\\u202egnp.\\x1b[31m.parquet" in text, "it is seen, not done"
    for number, picture in enumerate(browser.find_elements(By.CSS_SELECTOR, "[role=img]")):
        size: Any = picture.size
        assert size["width"] > 400 and size["height"] > 20, number


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_fits_a_phone_a_tablet_and_a_desk(
    browser: webdriver.Chrome, tmp_path: Path, width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == 360}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened(browser, MANY.to_html(), tmp_path / "report.html", "light")
        wide, inner = browser.execute_script(
            "return [document.documentElement.scrollWidth, innerWidth]"
        )
        assert wide <= inner == width, "the page itself does not scroll sideways"
        heading = browser.find_element(By.TAG_NAME, "h1").rect
        assert heading["y"] < 100 and heading["height"] > 20
        # tables in a frame of their own may scroll in it; nothing else is cut, or wider than what it is in
        beyond = browser.execute_script(
            """const all = 'main *:not(thead, thead *, defs, defs *, .defs)';
               return [...document.querySelectorAll(all)].filter(one => {
                 const box = one.getBoundingClientRect();
                 const card = (one.closest('section') || document.body).getBoundingClientRect();
                 const cut = getComputedStyle(one).overflowX === 'hidden' && one.scrollWidth > one.clientWidth;
                 const wide = box.left < card.left || box.right > card.right + 0.5;
                 return box.width && !one.closest('.scroll table') && (cut || wide);
               }).map(one => one.outerHTML.slice(0, 200))"""
        )
        assert beyond == []
        overlapping = browser.execute_script(
            """const at = [...document.querySelectorAll('svg.plot')].map(plot =>
                 [...plot.querySelectorAll('.start, .middle, .end')]
                   .map(one => one.getBoundingClientRect()).filter(box => box.width));
               return at.some(row => row.some((box, i) => i && row[i - 1].right > box.left))"""
        )
        assert not overlapping, "times below the curve"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_is_printed_on_a4(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """With its colours; in dark mode, too, on white paper."""
    opened(browser, MANY.to_html(), tmp_path / "report.html", "dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    pdf = base64.b64decode(printed)
    assert {
        tuple(map(round, map(float, one)))
        for one in re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    } == {(595, 842)}
    media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        assert colour(browser, "color") == "rgb(28, 33, 40)"
        assert colour(browser, "backgroundColor") == "rgba(0, 0, 0, 0)"
        assert colour(browser, "printColorAdjust", ".bar rect") == "exact"
        assert colour(browser, "breakInside", "tbody tr") == "avoid"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_what_is_damaged_is_not_green(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """A manifest whose first bytes are right, and whose tags are not."""
    opened(browser, REPORT.to_html(), tmp_path / "report.html", "light")
    fills = browser.execute_script(
        """const row = [...document.querySelectorAll('.bar')].find(one => one.innerText.startsWith('manifest'));
           return [...row.querySelectorAll('rect:not(.track)')].map(one => getComputedStyle(one).fill)"""
    )
    green = colour(browser, "fill", "svg .good-bar")
    assert fills[0] == green and "-wrong" in fills[1], fills
    looks = {colour(browser, "fill", f".{known}-bar") for known in ("good", "bad", "wrong", "open")}
    assert len(looks) == 4, "nor red, as plaintext is"
    script = "return [...document.querySelectorAll('pattern')].map(one => one.getAttribute('patternTransform'))"
    assert len(set(browser.execute_script(script))) == 3, "nor told by its colour alone"
    legend = browser.find_element(By.CSS_SELECTOR, "ul.legend").text
    assert legend.split("\n") == ["encrypted", "PLAINTEXT", "damaged", "not checked"]
    assert colour(browser, "fill", "circle") != green, "it is about growth, not encryption"


def test_a_note_leaves_the_notebook_as_it_is(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = f"<!DOCTYPE html><meta charset=utf-8><p id=other>Out[1]</p>{REPORT._repr_html_()}"
    for theme in ("light", "dark"):
        opened(browser, page, tmp_path / "note.html", theme)
        assert colour(browser, "backgroundColor") == "rgba(0, 0, 0, 0)"
        assert colour(browser, "color", "#other") == "rgb(0, 0, 0)"
    assert colour(browser, "backgroundColor", ".note") == "rgb(14, 18, 24)"
