"""`iceberg-crypto demo`, from beginning to end, as a person runs it; by day, unit/test_demo_steps.py has its course."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.programs import QUICK_JVM

PROMISES = (
    "Make a keystore",
    "336,776 rows",
    "early departures updated",
    "of lake.demo.flights are encrypted",
    "50 41 52 45",  # PARE
    "50 41 52 31",  # PAR1
    "41 47 53 31",  # AGS1
    "4f 62 6a 01",  # Obj1
    "328,521 rows, and the same answer",
    "read the table: BadWrappedKeyError",
    "Trying to read file with encrypted footer",
    "Without it    2 ways tried, none gave a row",
)


@pytest.mark.slow
@pytest.mark.nightly
def test_demo_tells_its_story_and_leaves_nothing(tmp_path: Path) -> None:
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        [Path(sys.executable).with_name("iceberg-crypto"), "demo"],
        cwd=here,
        env={
            **os.environ,
            "COLUMNS": "120",
            "SPARK_SUBMIT_OPTS": QUICK_JVM,
            "TMPDIR": str(temporary),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    missing = [promise for promise in PROMISES if promise not in done.stdout]
    assert not missing, done.stdout
    assert re.search(r"Removed \S+/iceberg-crypto-demo-\w+\. Only Spark's own cache", done.stdout)
    assert done.stderr == ""
    assert list(here.iterdir()) == []
    assert list(temporary.glob("iceberg-crypto*")) == []
