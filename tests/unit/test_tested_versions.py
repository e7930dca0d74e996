"""The command that writes the tables of docs/tested-versions.md from tests' reports."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs", "tested-versions.md")
PYTHON = {
    "Spark": "4.1.4",
    "Scala": "2.13.17",
    "Iceberg": "1.12.0",
    "Java": "17.0.15",
    "Python": "3.11.2",
}
JAVA = {
    "java.version": "21.0.1",
    "java.class.path": "/a/spark-core_2.13-4.1.4.jar:/a/scala-library-2.13.17.jar"
    ":/b/iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
}
ENDS = ("tests", "skipped", "failures", "errors")


def report(told: dict[str, str], ends: str = "4 1 0 0", day: str = "22") -> str:
    """JUnit's has a suite's properties, and pytest's its tests'."""
    counts = " ".join(f'{name}="{n}"' for name, n in zip(ENDS, ends.split(), strict=True))
    properties = "".join(
        f'<property name="{name}" value="{value}" />' for name, value in told.items()
    )
    properties = f"<properties>{properties}</properties>"
    if "java.version" not in told:
        properties = f"<testcase>{properties}</testcase>"
    return f'<testsuite {counts} timestamp="2026-11-{day}T01:02:03">{properties}</testsuite>'


def python(ends: str = "4 1 0 0", day: str = "22", /, **told: str) -> str:
    told = {"Vault": "1.21.0", **PYTHON, **told}
    suite = report({f"tested.{name}": value for name, value in told.items()}, ends, day)
    return f"<testsuites>{suite}</testsuites>"


def write(folder: Path, *reports: str, partial: bool = True) -> "tuple[int, str, str]":
    """In a tree of its own; the exit code, what it says, and the page."""
    tree = folder / "tree"
    for file in ("dev/tested_versions.py", str(PAGE), "settings.gradle"):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tree / file)
    kept = folder / "kept"
    for i, each in enumerate(reports):
        (kept / f"{i}").mkdir(parents=True)
        (kept / f"{i}" / "report.xml").write_text(each)
    kept.mkdir(exist_ok=True)
    (kept / "commit").write_text("abc1234\n")
    command = [sys.executable, str(tree / "dev" / "tested_versions.py"), str(kept)]
    command += ["--partial"] if partial else []
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr, (tree / PAGE).read_text()


def test_the_page_has_the_tables_that_the_command_writes() -> None:
    sys.path.insert(0, str(ROOT / "dev"))
    import tested_versions as command

    inside = (ROOT / PAGE).read_text().partition(command.BEGIN)[2].partition(command.END)[0]
    tables = re.findall(r"(?:^\|.*\n)+", inside, re.MULTILINE)
    rows, servers = (
        [tuple(line[2:-2].split(" | ")) for line in each.splitlines()[2:]] for each in tables
    )
    (told,) = re.findall(r"the last time on (\d{4}-\d\d-\d\d), at (\w+):", inside)
    assert inside.strip() == command.text(rows, servers, *told)


def test_rows_are_of_equal_versions_and_servers_are_listed_once(tmp_path: Path) -> None:
    code, said, page = write(
        tmp_path,
        python("4 1 0 0", "22"),
        python("4 0 0 0", "23"),
        python(Spark="3.5.9", Scala="2.12.18", moto="5.1"),
        report({**JAVA, "tested.Nessie": "0.99"}),
        report(JAVA, "0 0 0 0"),
        report(JAVA, "5 5 0 0"),
    )
    assert (code, said) == (0, "")
    assert "the last time on 2026-11-23, at abc1234:" in page
    assert "begin -->\n\nLeft out: Python's tests on Spark 4.0.\n\nRecorded " in page
    rows = re.findall(r"^\| (?:Python|Java)'s .*", page, re.MULTILINE)
    assert rows == [
        "| Java's | 4.1.4 | 2.13.17 | 1.12.0 | 21.0.1 |  | 3 |",
        "| Python's | 4.1.4 | 2.13.17 | 1.12.0 | 17.0.15 | 3.11.2 | 7 |",
        "| Python's | 3.5.9 | 2.12.18 | 1.12.0 | 17.0.15 | 3.11.2 | 3 |",
    ]
    assert re.findall(r"^\| (?:Vault|moto|Nessie) \| [\d.]+ \|$", page, re.MULTILINE) == [
        "| Nessie | 0.99 |",
        "| Vault | 1.21.0 |",
        "| moto | 5.1 |",
    ]


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ("4 0 1 0", "error: 1 of Python's tests failed on"),
        ("4 0 0 0", "has no report of Java's tests, Python's tests on Spark 4.0, "),
    ],
)
def test_a_run_that_failed_or_was_stopped_is_refused(tmp_path: Path, ends: str, says: str) -> None:
    code, said, page = write(tmp_path, python(ends), partial=False)
    assert code == 1
    assert says in said
    assert "hint: " in said
    assert page == (ROOT / PAGE).read_text()
