"""Programs in a process of their own: one run as its user would, servers ended."""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.jars import BUILD, ROOT, SPARK_JARS
from harness.steps import SEEN

START_SECONDS = 180  # Ranger's KMS has taken 60 where all workers were busy
# For short statements on two cores: the JVM's second compiler and parallel collector only cost. Spark's classes come
# from the archive of dev/spark_archive.py; Java says nothing where it does not fit.
QUICK_JVM = shlex.join(
    [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        f"-XX:SharedArchiveFile={BUILD / 'spark.jsa'}",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    ]
)


def run(
    command: Sequence[str | Path],
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    *,
    given: str = "",
    expect: int = 0,
    timeout: float = 1200,
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


def seen_by(
    program: Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    /,
    *,
    errors: Path | None = None,
    timeout: float = 1200,
    **settings: Any,
) -> dict[str, Any]:
    """Runs a program that tells what it saw (harness.steps).

    Args:
        errors: gets its standard error.
        settings: what it is given; of which `conf` configures its session.
    """
    places = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    command = [sys.executable, str(program)]
    if errors:
        command = ["bash", "-c", f'exec "$@" 2> {errors}', "-", *command]
    printed = run(
        command,
        cwd,
        {**places, **(environment or {})},
        given=json.dumps(settings),
        timeout=timeout,
    )
    line = next(line for line in printed.splitlines() if line.startswith(SEEN))
    return dict(json.loads(line.removeprefix(SEEN)))


def outcome(seen: Mapping[str, Any], step: str) -> Any:
    """What a step of a program saw; fails with its error."""
    found = seen[step]
    assert not (isinstance(found, dict) and "error" in found), found["error"]
    return found


def start_spark(
    program: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Starts one of Spark's programs (of its bin folder) in the folder of its log, which it writes."""
    return start_logging(
        [SPARK_JARS.parent / "bin" / program, *arguments],
        log,
        {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(SPARK_JARS.parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **(environment or {}),
        },
        log.parent,
    )


def start_logging(
    command: Sequence[object],
    log: Path,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> "subprocess.Popen[bytes]":
    """Starts a program that is given no input, and whose output is the log."""
    with log.open("wb") as output:
        return subprocess.Popen(
            list(map(str, command)),
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def wait_for_end(process: "subprocess.Popen[Any]") -> None:
    """Waits for a server that was told to end, and ends it by force after ten seconds."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Waits until it holds; fails if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_it_listens(process: "subprocess.Popen[Any]", port: int, log: Path) -> None:
    """Waits for a server that was started; ends it and raises an error when it does not listen in time."""
    end = time.monotonic() + START_SECONDS
    while not _listens(port):
        if process.poll() is not None or time.monotonic() > end:
            process.terminate()
            wait_for_end(process)
            raise RuntimeError(f"{process.args!r} did not start: {log.read_text()[-4000:]}")
        time.sleep(0.05)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
