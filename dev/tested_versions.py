"""Writes the tables of docs/tested-versions.md that a run records: which versions were in use, and what passed on them.

Usage: tested_versions.py FOLDER [--partial]   with the files that tests leave where ICEBERG_CRYPTO_TESTED names a
                                               folder, and in `commit` the commit that they ran at
       tested_versions.py check                says whether the page has tables of this form

A run in which a test failed is no row: the command refuses. So it does without Java's tests, or Python's on any Spark
that settings.gradle has a build for, unless --partial is given: then the page says what was left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tested-versions.md"
BUILDS = ROOT / "settings.gradle"
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


def environments(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The rows of the first table."""
    passed: Counter[tuple[str, ...]] = Counter()
    for run in runs(records):
        row = tuple(run["environment"].get(part, "") for part in PARTS)
        failed = run["outcomes"].get("failed", 0)
        if failed:
            fail(
                f"{failed} of {run['tests']} tests failed on {row}", "fix them, and run them again"
            )
        passed[(run["tests"], *row)] += run["outcomes"].get("passed", 0)
    rows = sorted(passed.items(), key=lambda item: (item[0][0], *map(numbers, item[0][1:])))
    return [(*row, str(count)) for row, count in rows]


def missing(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Of the tests that a whole run has, those that no row of the first table has."""
    sparks = dict.fromkeys(re.findall(r"iceberg-crypto-spark-(\d+\.\d+)_", BUILDS.read_text()))
    needed = {"Java's tests": ("Java's", "")}
    needed |= {f"Python's tests on Spark {spark}": ("Python's", f"{spark}.") for spark in sparks}
    return [
        name
        for name, (tests, spark) in needed.items()
        if not any(
            row[0] == tests and row[1].startswith(spark) and row[-1] not in ("", "0")
            for row in rows
        )
    ]


def left_out(names: list[str]) -> list[str]:
    """The paragraph about tests that a page lacks, where it lacks any."""
    return [f"Left out: {', '.join(names)}."] if names else []


def text(records: list[dict[str, Any]], commit: str, rows: list[tuple[str, ...]]) -> str:
    """What stands between the marks."""
    servers = sorted({pair for record in records for pair in record["servers"].items()})
    date = max(record["date"] for record in records)
    return "\n\n".join(
        [
            *left_out(missing(rows)),
            f"Recorded by the tests themselves, the last time on {date}, at {commit}:",
            table(ENVIRONMENTS, rows),
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
    *before, said, first, second = ["", "", *inside.split("\n\n")]  # three, at least
    tables = [part.splitlines() for part in (first, second)]
    return (
        re.fullmatch(
            r"Recorded by the tests themselves, the last time on \d{4}-\d\d-\d\d, at \w+:", said
        )
        is not None
        and all(
            lines[:2] == table(head, []).splitlines()
            and len(lines) > 2
            and all(line.count("|") == len(head) + 1 for line in lines)
            for head, lines in zip((ENVIRONMENTS, SERVERS), tables, strict=True)
        )
        and before[2:] == left_out(missing([cells(line) for line in tables[0][2:]]))
    )


def cells(line: str) -> tuple[str, ...]:
    """A row of a table of Markdown."""
    return tuple(cell.strip() for cell in line.split("|")[1:-1])


def write(folder: Path, partial: bool) -> None:
    """Write the page's tables from the files in a folder."""
    before, _, after = between(PAGE.read_text())
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if not records:
        fail(f"no test has left anything in {folder}", "make nightly")
    rows = environments(records)
    if (absent := missing(rows)) and not partial:
        fail(
            f"{folder} has no record of {', '.join(absent)}",
            "make nightly, to its end; or make tested-versions PARTIAL=1, and the page says what was left out",
        )
    commit = (folder / "commit").read_text().strip()
    PAGE.write_text(f"{before}{BEGIN}\n\n{text(records, commit, rows)}\n\n{END}{after}")


def main() -> None:
    """Write, or check."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("--partial", action="store_true")
    given = parser.parse_args()
    if given.what != "check":
        write(Path(given.what), given.partial)
    elif not has_form(between(PAGE.read_text())[1]):
        fail(f"{PAGE.name} has other tables", "make tested-versions")


if __name__ == "__main__":
    main()
