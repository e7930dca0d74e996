"""Nessie's server, in memory, in a process of its own, on 127.0.0.1 and a free port. It needs Java 21."""

import os
import re
from pathlib import Path

from harness.jars import build_jars
from harness.programs import free_port, start_logging, wait_until_it_listens

from servers.process import Server


def java_21() -> Path | None:
    """The java of a JDK of 21 or later, beside the one of these tests; None if it is not found."""
    home = os.environ.get("JAVA_HOME") or Path("/usr/bin/java").resolve().parents[1]
    for release in sorted(Path(home).resolve().parent.glob("*/release")):
        version = re.search(r'JAVA_VERSION="(\d+)', release.read_text())
        if version is not None and int(version[1]) >= 21:
            return release.parent / "bin" / "java"
    return None


def start_nessie(java: Path, log: Path) -> Server:
    """Starts the server; returns once it listens."""
    port = free_port()
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": 0,
        "nessie.version.store.type": "IN_MEMORY",
    }
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", *(f"-D{k}={v}" for k, v in settings.items())]
    command = [java, *options, "-jar", build_jars("nessie-server")[0]]
    process = start_logging(command, log, {"JAVA_TOOL_OPTIONS": ""})
    wait_until_it_listens(process, port, log)
    return Server(process, f"http://127.0.0.1:{port}/api/v2")
