"""Writes the tables of docs/properties.md from properties.tsv, from which the code has the names that it knows, too."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "jvm/core/src/main/resources/io/icebergcrypto/kms/config/properties.tsv"
PAGE = ROOT / "docs" / "properties.md"
PLACE = re.compile(r"(?<=<!-- properties: )([\w.]+)( -->\n\n)(?:\|.*\n)*")


def rows() -> list[dict[str, str]]:
    """Read the table."""
    with TABLE.open(encoding="utf-8") as table:
        return list(csv.DictReader(table, dialect="excel-tab", quoting=csv.QUOTE_NONE))


def page(text: str) -> str:
    """Return the page with its tables renewed."""
    return PLACE.sub(lambda place: place[1] + place[2] + "".join(_lines(place[1])), text)


def _lines(section: str) -> Iterator[str]:
    owner = section if section in ("table", "namespace") else "catalog"
    yield f"| {owner} property | default | meaning | bad values |\n|---|---|---|---|\n"
    for row in rows():
        if row["section"] == section:
            cells = [f"`{row['property']}`", row["default"], row["meaning"], row["bad values"]]
            escaped = [cell.replace("|", "\\|") for cell in cells]
            yield "|" + "".join(f" {cell} |" if cell else " |" for cell in escaped) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
