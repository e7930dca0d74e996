"""The report's page in a real browser: it works, says nothing on the console, and asks nobody for anything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness.browser
import pytest
from doubles.in_process import evidence_json
from harness.browser import chromium, theme_is
from selenium import webdriver
from selenium.webdriver.common.by import By

from pyspark_iceberg_crypto import TablesReport, VerifyReport

REPORT = VerifyReport.of(evidence_json())
BOTH = TablesReport("lake.db", [REPORT, REPORT], [{"table": "t", "problem": "p", "hint": "h"}])


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
    for number, picture in enumerate(browser.find_elements(By.CSS_SELECTOR, "svg[role=img]")):
        size: Any = picture.size
        assert size["width"] > 400 and size["height"] > 20, number


def test_no_text_is_wider_than_its_picture(browser: webdriver.Chrome, tmp_path: Path) -> None:
    opened(browser, REPORT.to_html(), tmp_path / "report.html", "light")
    wider = browser.execute_script(
        """return [...document.querySelectorAll('svg[role=img] text')].filter(text => {
             const box = text.getBBox(), all = text.ownerSVGElement.viewBox.baseVal;
             return box.x < -1 || box.x + box.width > all.width + 1 || box.y + box.height > all.height + 1;
           }).map(text => text.textContent)"""
    )
    assert wider == []
    narrow = browser.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert narrow, "the page itself does not scroll sideways"


def test_a_note_leaves_the_notebook_as_it_is(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = f"<!DOCTYPE html><meta charset=utf-8><p id=other>Out[1]</p>{REPORT._repr_html_()}"
    for theme in ("light", "dark"):
        opened(browser, page, tmp_path / "note.html", theme)
        assert colour(browser, "backgroundColor") == "rgba(0, 0, 0, 0)"
        assert colour(browser, "color", "#other") == "rgb(0, 0, 0)"
    assert colour(browser, "backgroundColor", ".note") == "rgb(14, 18, 24)"
