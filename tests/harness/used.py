"""What the tests really ran on, for docs/tested-versions.md, as sessions and servers tell it.

Each process leaves a file in the folder that ICEBERG_CRYPTO_TESTED names; without it nothing is kept. Java's tests
leave the same. `make tested-versions` writes the document's tables from these files.
"""

import json
import os
import platform
import re
import uuid
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("ICEBERG_CRYPTO_TESTED")
_servers: dict[str, str] = {}
_sessions: list[dict[str, str]] = []
_outcomes: Counter[str] = Counter()


def used(server: str, version: str) -> None:
    """A server is in use, of this version."""
    _servers[server] = version


def used_jar(server: str, jars: Iterable[Path], artifact: str) -> None:
    """A server is in use, of the version of one of the jars on its class path."""
    (version,) = {
        found[1]
        for jar in jars
        if (found := re.fullmatch(rf"{artifact}-(\d[\w.]*)\.jar", jar.name))
    }
    used(server, version)


def used_spark(session: Any) -> None:
    """A session of Spark is in use, in a JVM that this process drives."""
    java: Any = session._jvm
    _sessions.append(
        {
            "Spark": str(session.version),
            "Scala": str(java.scala.util.Properties.versionNumberString()),
            "Iceberg": str(java.org.apache.iceberg.IcebergBuild.version()),
            "Java": str(java.java.lang.System.getProperty("java.version")),
            "Python": platform.python_version(),
        }
    )
    hive = java.org.apache.hive.common.util.HiveVersionInfo.getVersion()
    used("Hive metastore, embedded in Spark", str(hive))


def count(report: pytest.TestReport) -> None:
    """A test, or its set-up or tear-down, has ended."""
    if report.when == "call" or report.outcome != "passed":
        _outcomes[report.outcome] += 1


def keep() -> None:
    """Leave the file of this process, when it has run a test."""
    if FOLDER is None or not _outcomes:
        return
    kept = {
        "tests": "Python's",
        "run": os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "environments": _sessions or [{"Python": platform.python_version()}],
        "servers": _servers,
        "outcomes": dict(_outcomes),
    }
    folder = Path(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(kept, indent=1))
