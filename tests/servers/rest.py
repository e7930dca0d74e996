"""Iceberg's REST reference server in a process of its own, on 127.0.0.1 and a free port."""

import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue

from harness.jars import SPARK_JARS, build_jars, spark_jar
from harness.programs import wait_for_end
from harness.used import used_jar

START_SECONDS = 60


@dataclass
class RestServer:
    """A running server. `stop` ends this process and no other."""

    process: "subprocess.Popen[str]"
    uri: str

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()  # the server ends when its input does
        wait_for_end(self.process)


def start_rest_server(database: Path, warehouse: Path, log: Path) -> RestServer:
    """Starts the server over a JDBC catalog on SQLite; returns once it listens."""
    jars = [*build_jars("rest-server"), spark_jar("hadoop-client-api-*.jar")]
    jars.append(spark_jar("hadoop-client-runtime-*.jar"))
    jars += SPARK_JARS.glob("commons-logging-*.jar")  # Hadoop 3.3, of Spark 3.5, needs it
    used_jar("REST: Iceberg's reference server", jars, "iceberg-core")
    url = f"jdbc:sqlite:{database}?busy_timeout=30000"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                "java",
                "-Xmx512m",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                ":".join(map(str, jars)),
                str(Path(__file__).with_name("RestServer.java")),
                url,
                str(warehouse),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    return RestServer(process, f"http://127.0.0.1:{port_of(process, log)}")


def port_of(process: "subprocess.Popen[str]", log: Path) -> int:
    """The port from the server's first line of output."""
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    read_line = process.stdout.readline
    threading.Thread(target=lambda: lines.put(read_line()), daemon=True).start()
    try:
        line = lines.get(timeout=START_SECONDS)
    except Empty:
        line = ""
    if not line.startswith("PORT "):
        process.kill()
        process.wait()
        raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
    return int(line.split()[1])
