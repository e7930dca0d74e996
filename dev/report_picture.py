"""Takes the picture of a report's page for docs/audit.md: python dev/report_picture.py docs/images/report.png.

The report is a real one, of a small table in /tmp/lake, which is removed afterwards. Needs Chromium and ChromeDriver.
"""

from __future__ import annotations

import base64
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import (
    Keystore,
    check_report,
    configure_spark,
    encryption_keys,
    verify_table,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from harness.browser import chromium

FOLDER = Path("/tmp/lake")  # the page shows it
WIDTH = 840


def page() -> str:
    """Make a table, verify it and sign the report as audit.md says, and return the page of the checked report."""
    password = FOLDER / "password"
    password.touch(mode=0o600)
    password.write_text(secrets.token_urlsafe(24))
    keys = Keystore.create(
        FOLDER / "keys.p12", keys=["sales", "audit"], password_file=str(password)
    )
    builder = SparkSession.builder.master("local[2]")
    configure_spark(builder, "lake", type="hadoop", warehouse=str(FOLDER / "warehouse"), kms=keys)
    spark = builder.getOrCreate()
    spark.sql(
        "CREATE TABLE lake.shop.orders (id BIGINT, customer STRING, total DECIMAL(9, 2)) USING iceberg "
        "TBLPROPERTIES ('encryption.key-id'='sales', 'write.delete.mode'='merge-on-read')"
    )
    for rows in ("(1, 'Ada', 12.50), (2, 'Bo', 7.00)", "(3, 'Cy', 3.25)"):
        spark.sql(f"INSERT INTO lake.shop.orders VALUES {rows}")
    spark.sql("DELETE FROM lake.shop.orders WHERE id = 2")
    with verify_table(
        spark, "lake.shop.orders", deep=True, all_snapshots=True, strays=True
    ) as report:
        found = report.with_keys(encryption_keys(spark, "lake.shop.orders").keys)
        (FOLDER / "report.json").write_text(found.sign(spark, "lake", "audit").to_json())
    checked = check_report(spark, "lake", FOLDER / "report.json", key_id="audit").to_html()
    spark.stop()
    return checked


def picture(html: str) -> bytes:
    """Return its beginning, with the chart of files, as a PNG."""
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
        size = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        file = Path(profile) / "report.html"
        file.write_text(html, encoding="utf-8")
        browser.get(file.as_uri())
        below = "return document.querySelector('figure').getBoundingClientRect().bottom"
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": browser.execute_script(below), "scale": 1}
        options = {"captureBeyondViewport": True, "clip": clip}
        return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"])


if __name__ == "__main__":
    FOLDER.mkdir()
    try:
        Path(sys.argv[1]).write_bytes(picture(page()))
    finally:
        shutil.rmtree(FOLDER)
