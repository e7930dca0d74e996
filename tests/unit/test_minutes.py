"""Where the minutes of `make test` go: dev/minutes.py."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "dev" / "minutes.py"


def report(*cases: tuple[str, float]) -> str:
    lines = [f'<testcase name="t" classname="{name}" time="{time}" />' for name, time in cases]
    return f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>"


def test_the_longest_of_each_report(tmp_path: Path) -> None:
    java = [("io.icebergcrypto.PurgeTest", 60), ("io.icebergcrypto.PurgeTest$Nested", 30)]
    (tmp_path / "TEST-junit-jupiter.xml").write_text(report(*java))
    (tmp_path / "TEST-junit-vintage.xml").write_text(report())
    many = [(f"tests.unit.test_{n}", 6.0) for n in range(12)]
    (tmp_path / "python.xml").write_text(report(("tests.test_demo.TestDemo", 240), *many))
    command = [sys.executable, str(PROGRAM), str(tmp_path)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "   1.5 min  io.icebergcrypto.PurgeTest\n\n   4.0 min  tests.test_demo\n" in told
    assert told.endswith("   0.3 min  3 others\n\n")
