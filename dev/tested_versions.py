"""Writes the tables of docs/tested-versions.md that a run records: which versions were in use, and what passed on them.

Usage: tested_versions.py FOLDER   with the files that tests leave where ICEBERG_CRYPTO_TESTED names a folder, and in
                                   `commit` the commit that they ran at
       tested_versions.py check    says whether the page has tables of this form

A run in which a test failed is no row: the command refuses.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tested-versions.md"
BEGIN, END = "<!-- written by `make tested-versions`: begin -->", "<!-- end -->"
PARTS = ("Spark", "Scala", "Iceberg", "Java", "Python")
ENVIRONMENTS = ("tests", *PARTS, "passed")
SERVERS = ("server", "version")


def fail(error: str, hint: str) -> None:
    """End with an error."""
    sys.exit(f"error: {error}\n  hint: {hint}")


def runs(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join what the processes of one run have left."""
    joined: dict[str, dict[str, Any]] = {}
    for record in records:
        run = joined.setdefault(
            record["run"], {"tests": record["tests"], "environment": {}, "outcomes": Counter()}
        )
        for environment in record["environments"]:
            run["environment"].update(environment)
        run["outcomes"].update(record["outcomes"])
    return list(joined.values())


def text(records: list[dict[str, Any]], commit: str) -> str:
    """What stands between the marks."""
    passed: Counter[tuple[str, ...]] = Counter()
    for run in runs(records):
        row = tuple(run["environment"].get(part, "") for part in PARTS)
        failed = run["outcomes"].get("failed", 0)
        if failed:
            fail(
                f"{failed} of {run['tests']} tests failed on {row}", "mend them, and run them again"
            )
        passed[(run["tests"], *row)] += run["outcomes"].get("passed", 0)
    rows = sorted(passed.items(), key=lambda item: (item[0][0], *map(numbers, item[0][1:])))
    servers = sorted({pair for record in records for pair in record["servers"].items()})
    date = max(record["date"] for record in records)
    return "\n\n".join(
        [
            f"Recorded by the tests themselves, the last time on {date}, at {commit}:",
            table(ENVIRONMENTS, [(*row, str(count)) for row, count in rows]),
            table(SERVERS, servers),
        ]
    )


def numbers(version: str) -> list[int]:
    """Order versions, the newest first."""
    return [-int(number) for number in re.findall(r"\d+", version)]


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|"
        for line in lines
    )


def between(page: str) -> tuple[str, str, str]:
    """Split a page at the marks."""
    before, begin, rest = page.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not begin or not end:
        fail(f"{PAGE.name} lacks the marks", f"put {BEGIN} and {END} where the tables belong")
    return before, inside.strip(), after


def has_form(inside: str) -> bool:
    """Whether a text is one that this command has written."""
    said, *tables = inside.split("\n\n")
    return (
        re.fullmatch(
            r"Recorded by the tests themselves, the last time on \d{4}-\d\d-\d\d, at \w+:", said
        )
        is not None
        and len(tables) == 2
        and all(
            lines[:2] == table(head, []).splitlines()
            and len(lines) > 2
            and all(line.count("|") == len(head) + 1 for line in lines)
            for head, lines in zip(
                (ENVIRONMENTS, SERVERS), map(str.splitlines, tables), strict=True
            )
        )
    )


def main(what: str) -> None:
    """Write, or check."""
    before, inside, after = between(PAGE.read_text())
    if what == "check":
        if not has_form(inside):
            fail(f"{PAGE.name} has other tables", "make tested-versions")
        return
    records = [json.loads(path.read_text()) for path in sorted(Path(what).glob("*.json"))]
    if not records:
        fail(f"no test has left anything in {what}", "make nightly")
    commit = (Path(what) / "commit").read_text().strip()
    PAGE.write_text(f"{before}{BEGIN}\n\n{text(records, commit)}\n\n{END}{after}")


if __name__ == "__main__":
    main(*sys.argv[1:])
