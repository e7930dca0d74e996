"""The command that writes the tables of docs/tested-versions.md from what tests recorded."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyspark_iceberg_crypto.jvm.artifacts import BUILDS

ROOT = Path(__file__).resolve().parents[2]
PYTHON = {
    "Spark": "4.1.4",
    "Scala": "2.13.17",
    "Iceberg": "1.12.0",
    "Java": "17.0.15",
    "Python": "3.11.2",
}


def record(run: str = "a", **changes: Any) -> dict[str, Any]:
    return {
        "tests": "Python's",
        "run": run,
        "date": "2026-11-22",
        "environments": [PYTHON],
        "servers": {"Vault": "1.21.0"},
        "outcomes": {"passed": 3, "skipped": 1},
        **changes,
    }


def whole() -> list[dict[str, Any]]:
    """Records of all that a night runs: Java's tests, and Python's on each Spark that there is a jar for."""
    sparks = {build.spark: {**PYTHON, "Spark": f"{build.spark}.7"} for build in BUILDS}
    java = record("java", tests="Java's", environments=[{**PYTHON, "Python": ""}])
    return [java, *(record(spark, environments=[each]) for spark, each in sparks.items())]


def write(folder: Path, *records: dict[str, Any], partial: bool = True) -> "tuple[int, str, str]":
    """In a tree of its own; the exit code, what it says, and the page."""
    tree = folder / "tree"
    for part in ("dev", "docs"):
        (tree / part).mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "dev" / "tested_versions.py", tree / "dev")
    shutil.copy(ROOT / "docs" / "tested-versions.md", tree / "docs")
    shutil.copy(ROOT / "settings.gradle", tree)
    kept = folder / "kept"
    kept.mkdir()
    (kept / "commit").write_text("abc1234\n")
    for i, each in enumerate(records):
        (kept / f"{i}.json").write_text(json.dumps(each))
    done = run(tree, str(kept), *(["--partial"] if partial else []))
    return done.returncode, done.stderr, (tree / "docs" / "tested-versions.md").read_text()


def run(tree: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(tree / "dev" / "tested_versions.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_page_has_the_tables_that_the_command_writes() -> None:
    done = run(ROOT, "check")
    assert done.returncode == 0, done.stderr


def test_processes_of_a_run_are_one_row_and_servers_are_listed_once(tmp_path: Path) -> None:
    older = {**PYTHON, "Spark": "3.5.9", "Iceberg": "1.12.0", "Scala": "2.12.18"}
    code, said, page = write(
        tmp_path,
        record("a"),
        record("a", environments=[{"Python": "3.11.2"}], outcomes={"passed": 4}, date="2026-11-23"),
        record("b", environments=[older], servers={"Vault": "1.21.0", "moto": "5.1"}),
        record("c", tests="Java's", environments=[{"Java": "21.0.1"}]),
    )
    assert (code, said) == (0, "")
    assert "the last time on 2026-11-23, at abc1234:" in page
    rows = re.findall(r"^\| (?:Python|Java)'s .*", page, re.MULTILINE)
    assert rows == [
        "| Java's |  |  |  | 21.0.1 |  | 3 |",
        "| Python's | 4.1.4 | 2.13.17 | 1.12.0 | 17.0.15 | 3.11.2 | 7 |",
        "| Python's | 3.5.9 | 2.12.18 | 1.12.0 | 17.0.15 | 3.11.2 | 3 |",
    ]
    assert re.findall(r"^\| (?:Vault|moto) .*", page, re.MULTILINE) == [
        "| Vault | 1.21.0 |",
        "| moto | 5.1 |",
    ]
    assert run(tmp_path / "tree", "check").returncode == 0


def test_versions_on_which_a_test_failed_are_refused(tmp_path: Path) -> None:
    code, said, page = write(tmp_path, record(outcomes={"passed": 3, "failed": 1}))
    assert code == 1
    assert "error: 1 of Python's tests failed on" in said
    assert "hint: " in said
    assert page == (ROOT / "docs" / "tested-versions.md").read_text()


def test_a_whole_run_needs_no_option(tmp_path: Path) -> None:
    code, said, page = write(tmp_path, *whole(), partial=False)
    assert (code, said) == (0, "")
    assert "Left out" not in page
    assert run(tmp_path / "tree", "check").returncode == 0


@pytest.mark.parametrize(
    ("place", "changes", "name"),
    [
        (0, None, "Java's tests"),
        (1, None, "Python's tests on Spark 4.1"),
        (3, None, "Python's tests on Spark 3.5"),
        (2, {"outcomes": {"skipped": 5}}, "Python's tests on Spark 4.0"),
    ],
)
def test_a_run_that_was_stopped_is_refused_or_named(
    tmp_path: Path, place: int, changes: dict[str, Any] | None, name: str
) -> None:
    records = whole()
    gone = records.pop(place)
    records += [{**gone, **changes}] if changes else []
    (tmp_path / "refused").mkdir()
    code, said, page = write(tmp_path / "refused", *records, partial=False)
    assert code == 1
    assert f"has no record of {name}\n" in said
    assert "PARTIAL=1" in said
    assert page == (ROOT / "docs" / "tested-versions.md").read_text()

    (tmp_path / "partial").mkdir()
    code, said, page = write(tmp_path / "partial", *records)
    assert (code, said) == (0, "")
    assert f"begin -->\n\nLeft out: {name}.\n\nRecorded " in page
    tree = tmp_path / "partial" / "tree"
    assert run(tree, "check").returncode == 0
    (tree / "docs" / "tested-versions.md").write_text(page.replace("Left out", "It has not"))
    assert run(tree, "check").returncode == 1


def test_without_a_record_it_says_where_they_come_from(tmp_path: Path) -> None:
    code, said, _ = write(tmp_path)
    assert code == 1
    assert "no test has left anything" in said
    assert "hint: make nightly" in said


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("| passed |", "| number |"),
        ("the last time on 2", "some time about 2"),
        ("|---|---|\n", ""),
    ],
)
def test_another_form_is_noticed(tmp_path: Path, right: str, wrong: str) -> None:
    _, _, page = write(tmp_path, record())
    assert right in page
    (tmp_path / "tree" / "docs" / "tested-versions.md").write_text(page.replace(right, wrong))
    done = run(tmp_path / "tree", "check")
    assert done.returncode == 1
    assert "hint: make tested-versions" in done.stderr
