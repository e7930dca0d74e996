"""Programs in a process of their own: one run as its user would, servers ended."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.jars import ROOT, SPARK_JARS

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for JVMs that live for seconds


def run(
    command: Sequence[str | Path],
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    *,
    given: str = "",
    expect: int = 0,
    timeout: float = 400,
) -> str:
    """Runs a command in a folder of the test's, and returns what it prints.

    Args:
        command: the program and its arguments; Python programs find this package and pip's Spark.
        cwd: where it runs.
        environment: variables beside those of this process.
        given: what it reads from standard input.
        expect: the exit code that it must end with.
        timeout: in seconds.
    """
    done = subprocess.run(
        list(command),
        cwd=cwd,
        env={
            **os.environ,
            "JAVA_TOOL_OPTIONS": QUICK_JVM,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "SPARK_HOME": str(SPARK_JARS.parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **(environment or {}),
        },
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == expect, done.stdout[-4000:] + done.stderr[-8000:]
    return done.stdout


def wait_for_end(process: "subprocess.Popen[Any]") -> None:
    """Waits for a server that was told to end, and ends it by force after ten seconds."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
