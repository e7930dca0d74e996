"""The documents' site: it builds, and works in a real browser from the disk, where it asks nobody for anything.

Javadoc is left to `make docs`: Gradle takes most of a minute for it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.browser import chromium, opened, theme_is
from harness.jars import ROOT
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

pytestmark = pytest.mark.nightly


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    javadoc = folder / "javadoc"
    javadoc.mkdir(exist_ok=True)
    (javadoc / "index.html").write_text("<!DOCTYPE html><meta charset=utf-8><title>Java</title>")
    environment = {
        **os.environ,
        "ICEBERG_CRYPTO_JAVADOC": str(javadoc),
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONPATH": str(ROOT),
    }
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--site-dir",
        str(folder / "site"),
    ]
    return subprocess.run(
        [*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    built = build(folder)
    assert built.returncode == 0, built.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def test_a_link_that_leads_nowhere_fails(tmp_path: Path) -> None:
    config = tmp_path / "mkdocs.yml"
    docs = tmp_path / "docs"
    docs.mkdir()
    text = (ROOT / "mkdocs.yml").read_text()
    text = text.replace("docs_dir: docs", f"docs_dir: {docs}")
    text = text.replace("hooks: [dev/site.py]", f"hooks: [{ROOT / 'dev' / 'site.py'}]")
    config.write_text(text[: text.index("\nnav:")] + "\nnav: [{Page: page.md}]\n")
    for link, missing in (("nowhere.md", "nowhere.md"), ("page.md#nowhere", "#nowhere")):
        (docs / "page.md").write_text(f"[a link]({link})\n")
        built = build(tmp_path, "--config-file", str(config))
        assert built.returncode != 0
        assert missing in built.stderr


def test_pages_ask_nobody(site: Path, browser: webdriver.Chrome) -> None:
    """All of them, light and dark, on a desk and on a phone."""
    sizes = {"light": (1280, 900, False), "dark": (390, 800, True)}
    pages = [page for page in site.rglob("*.html") if "javadoc" not in page.parts]
    assert len(pages) > 40
    for theme, (width, height, mobile) in sizes.items():
        theme_is(browser, theme)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for page in pages:
            if page.name == "404.html":
                continue  # for servers: its addresses begin at the root
            asked = opened(browser, page.as_uri())
            assert all(one.startswith(site.as_uri()) for one in asked), (page, asked)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, f"{page} scrolls sideways"
        ground = "return getComputedStyle(document.body).backgroundColor"
        assert (browser.execute_script(ground) == "rgb(255, 255, 255)") == (theme == "light")


def test_the_search_finds_from_the_disk(site: Path, browser: webdriver.Chrome) -> None:
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    opened(browser, (site / "index.html").as_uri())
    field = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    field.click()
    field.send_keys("purge_without_key")
    WebDriverWait(browser, 20).until(
        lambda page: any(
            "guide.html" in str(one.get_attribute("href"))
            for one in page.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        ),
        "the guide is found",
    )
    assert browser.get_log("browser") == [], "the console"


def test_the_references_are_whole(site: Path) -> None:
    command = (site / "reference" / "cli.html").read_text()
    for name in ("verify", "encrypt", "kms-create-key"):
        assert f'id="iceberg-crypto-{name}"' in command, name
    assert "Sentinel" not in command
    python = (site / "reference" / "python.html").read_text()
    assert 'id="pyspark_iceberg_crypto.verify_table"' in python
    assert "Raises:" in python
    plain = re.sub("<[^>]+>", "", python)
    assert "verify_table(\n    spark: SparkSession,\n    table: str,\n" in plain, "formatted"
    assert "The name of the environment variable that holds the token." in plain, "Vault's setting"
    first = (site / "index.html").read_text()
    assert "images/keys.svg" in first and "docs/images" not in first
