"""A Spark session for a command-line tool: its noise goes to a file, not to the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto.jvm import _launch

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOG_SETTINGS = Path(__file__).parent / "log4j2-quiet.properties"


def builder(app: str, level: str = "error", java_options: str = "") -> SparkSession.Builder:
    """Begin a session that logs from a level on, shows no progress bar and serves no UI.

    Args:
        app: its name.
        level: the level.
        java_options: further options of the driver's JVM, beside those that the user has set.
    """
    made = SparkSession.builder.appName(app)
    log = f"-Dlog4j2.configurationFile={LOG_SETTINGS} -Diceberg.crypto.log={level}"
    own = _launch.session_setting({}, JAVA_OPTIONS)  # such as a proxy
    made.config(JAVA_OPTIONS, " ".join(filter(None, (own, log, java_options))))
    made.config("spark.ui.enabled", "false")
    made.config("spark.ui.showConsoleProgress", "false")
    return made


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Send standard output and error to a file, for this process and those it starts meanwhile.

    A JVM started in here keeps writing to the file; Python's own output comes back afterwards.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(saved, start=1):
            os.dup2(copy, number)
            os.close(copy)
