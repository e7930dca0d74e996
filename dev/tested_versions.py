"""Writes the tables of docs/tested-versions.md from tests' reports in JUnit's XML: what they ran on, and what passed.

Usage: tested_versions.py FOLDER [--partial]   with what `make nightly` leaves: reports, and in `commit` its commit

Versions are properties in the reports: Java's are the JVM's own, Python's are of tests/harness/used.py. A run in which
a test failed is no row: the command refuses. So it does without Java's tests, or Python's on any Spark that
settings.gradle has a build for, unless --partial is given: then the page says what was left out.
"""

from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tested-versions.md"
BEGIN, END = "<!-- written by `make tested-versions`: begin -->", "<!-- end -->"
PARTS = ("Spark", "Scala", "Iceberg", "Java", "Python")
# Of the class path of Java's tests.
JARS = {
    "Spark": r"spark-core_[\d.]+-([\d.]+)\.jar",
    "Scala": r"scala-library-([\d.]+)\.jar",
    "Iceberg": r"iceberg-spark-runtime-[\d._]+-([\d.]+)\.jar",
}
Row = tuple[str, ...]


def fail(error: str, hint: str) -> None:
    """End with an error."""
    sys.exit(f"error: {error}\n  hint: {hint}")


class Run:
    """One report: whose tests, what they told, and how they ended."""

    def __init__(self, suite: ET.Element) -> None:
        told = [(one.get("name", ""), one.get("value", "")) for one in suite.iter("property")]
        of_jvm = dict(told)
        tested = [(name[7:], value) for name, value in told if name.startswith("tested.")]
        self.tests = "Python's"
        if path := of_jvm.get("java.class.path"):
            found = {part: re.search(jar, path) for part, jar in JARS.items()}
            tested += [(part, jar[1]) for part, jar in found.items() if jar]
            tested.append(("Java", of_jvm["java.version"]))
            self.tests = "Java's"
        self.row = (self.tests, *(dict(tested).get(part, "") for part in PARTS))
        self.servers = {pair for pair in tested if pair[0] not in PARTS}
        self.date = suite.get("timestamp", "")[:10]
        of = {name: int(suite.get(name, 0)) for name in ("tests", "skipped", "failures", "errors")}
        self.failed = of["failures"] + of["errors"]
        self.passed = of["tests"] - of["skipped"] - self.failed


def rows(runs: list[Run]) -> list[Row]:
    """Make those of the first table."""
    passed: Counter[Row] = Counter()
    for run in runs:
        if run.failed:
            fail(f"{run.failed} of {run.tests} tests failed on {run.row[1:]}", "fix them")
        passed[run.row] += run.passed
    order = sorted(passed, key=lambda row: (row[0], *map(newest_first, row[1:])))
    return [(*row, str(passed[row])) for row in order if passed[row]]


def newest_first(version: str) -> list[int]:
    """Order versions."""
    return [-int(number) for number in re.findall(r"\d+", version)]


def missing(rows: Iterable[Row]) -> list[str]:
    """Name, of the tests that a whole run has, those that no row of the first table has."""
    sparks = re.findall(r"iceberg-crypto-spark-(\d+\.\d+)_", (ROOT / "settings.gradle").read_text())
    needed = {"Java's tests": ("Java's", "")}
    needed |= {f"Python's tests on Spark {spark}": ("Python's", f"{spark}.") for spark in sparks}
    had = [row[:2] for row in rows]
    return [
        name
        for name, (tests, spark) in needed.items()
        if not any(row[0] == tests and row[1].startswith(spark) for row in had)
    ]


def text(rows: list[Row], servers: Iterable[Row], date: str, commit: str) -> str:
    """Make what stands between the marks."""
    absent = missing(rows)
    return "\n\n".join(
        [
            *([f"Left out: {', '.join(absent)}."] if absent else []),
            f"Recorded by the tests themselves, the last time on {date}, at {commit}:",
            table(("tests", *PARTS, "passed"), rows),
            table(("server", "version"), sorted(servers)),
        ]
    )


def table(head: Row, rows: Iterable[Row]) -> str:
    """Make a table of Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines])


def main() -> None:
    """Write the page's tables from the reports in a folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partial", action="store_true")
    given = parser.parse_args()
    reports = [ET.parse(path).getroot() for path in sorted(given.folder.rglob("*.xml"))]
    runs = [Run(suite) for report in reports for suite in report.iter("testsuite")]
    runs = [run for run in runs if run.passed or run.failed]
    if not runs:
        fail(f"no test has left a report in {given.folder}", "make nightly")
    found = rows(runs)
    if (absent := missing(found)) and not given.partial:
        fail(
            f"{given.folder} has no report of {', '.join(absent)}",
            "make nightly, to its end; or make tested-versions PARTIAL=1, and the page says what was left out",
        )
    servers = {pair for run in runs for pair in run.servers}
    commit = (given.folder / "commit").read_text().strip()
    written = text(found, servers, max(run.date for run in runs), commit)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{written}\n\n{END}{after}")


if __name__ == "__main__":
    main()
