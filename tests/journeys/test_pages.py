"""The journeys that are pages: pasted block by block, as dev/newcomer.sh does in a new Debian, and on each Spark."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from harness.jars import ROOT, build_jars, our_jar
from harness.programs import run

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("page", ["tutorial", "tutorial-security"])
def test_a_page_that_is_pasted(page: str, tmp_path: Path) -> None:
    environment = tmp_path / "iceberg-crypto-venv" / "bin" / "activate"  # of this Python
    environment.parent.mkdir(parents=True)
    environment.write_text(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n")
    jars = [our_jar(), *build_jars("test-jars", "iceberg-spark-runtime-*.jar")]
    conf = "--conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1"
    command = [sys.executable, ROOT / "dev" / "newcomer.py", ROOT / "docs" / f"{page}.md"]
    said = run(
        command,
        tmp_path,
        {
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jars))} {conf} pyspark-shell",
        },
        timeout=1200,
    )
    assert " 0 not as the pages say" in said
