"""Where the minutes of `make test` go: dev/minutes.py."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "dev" / "minutes.py"


def report(*cases: tuple[str, float]) -> str:
    lines = [f'<testcase name="t" classname="{name}" time="{time}" />' for name, time in cases]
    return f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>"


def told_of(reports: Path) -> str:
    command = [sys.executable, str(PROGRAM), str(reports)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_longest_of_each_report(tmp_path: Path) -> None:
    java = [("io.icebergcrypto.PurgeTest", 60), ("io.icebergcrypto.PurgeTest$Nested", 30)]
    (tmp_path / "TEST-junit-jupiter.xml").write_text(report(*java))
    (tmp_path / "TEST-junit-vintage.xml").write_text(report())
    many = [(f"tests.unit.test_{n}", 6.0) for n in range(12)]
    (tmp_path / "python.xml").write_text(report(("tests.test_demo.TestDemo", 240), *many))
    told = told_of(tmp_path)
    assert "   1.5 min  io.icebergcrypto.PurgeTest\n\n   4.0 min  tests.test_demo\n" in told
    assert told.endswith("   0.3 min  3 others\n\n")


def test_what_failed_stands_in_the_end(tmp_path: Path) -> None:
    why = '<failure message="&#10;expected: 1&#10; but was: 2">at Some.java</failure>'
    case = (
        f'<testcase name="rows()" classname="io.icebergcrypto.PurgeTest" time="1">{why}</testcase>'
    )
    error = '<testcase name="test_a" classname="tests.unit.test_a" time="1"><error message="no lake" /></testcase>'
    (tmp_path / "java.xml").write_text(f"<testsuite>{case}</testsuite>")
    (tmp_path / "python.xml").write_text(f"<testsuite>{error}</testsuite>")
    assert told_of(tmp_path).splitlines()[-2:] == [
        "FAILED io.icebergcrypto.PurgeTest.rows(): expected: 1",
        "FAILED tests.unit.test_a.test_a: no lake",
    ]
