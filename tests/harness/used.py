"""What the tests really ran on, for docs/tested-versions.md, as sessions and servers tell it.

The next test to end has it among its properties in pytest's report (`--junitxml`). Java's tests do the same.
`make tested-versions` reads these reports.
"""

import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_told = [("tested.Python", platform.python_version())]


def used(what: str, version: str) -> None:
    """A server, or what tests run on, is in use, of this version."""
    _told.append((f"tested.{what}", version))


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
    used("Spark", str(session.version))
    used("Scala", str(java.scala.util.Properties.versionNumberString()))
    used("Iceberg", str(java.org.apache.iceberg.IcebergBuild.version()))
    used("Java", str(java.java.lang.System.getProperty("java.version")))
    hive = java.org.apache.hive.common.util.HiveVersionInfo.getVersion()
    used("Hive metastore, embedded in Spark", str(hive))


def told() -> list[tuple[str, str]]:
    """What is new since the last call."""
    new = [*_told]
    _told.clear()
    return new
