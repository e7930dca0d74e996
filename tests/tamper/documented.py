"""What docs/tamper.md says."""

import re
from pathlib import Path

_DOCUMENT = Path(__file__).parents[2] / "docs" / "tamper.md"


def table_of_document(first: str) -> dict[tuple[str, str], set[str]]:
    """What docs/tamper.md says notices an attack (row) on a column, in the table whose first heading is this one.

    Nothing where it cannot be done.
    """
    text = _DOCUMENT.read_text()
    lines = text[text.index(f"| {first} |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    return {
        (row[0], column): set() if cell == "-" else set(re.split(r", | or ", cell))
        for row in rows
        for column, cell in zip(head[1:], row[1:], strict=True)
    }
