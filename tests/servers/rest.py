"""Iceberg's REST reference server in a process of its own, on 127.0.0.1 and a free port."""

from dataclasses import dataclass
from pathlib import Path

from harness.jars import SPARK_JARS, build_jars, spark_jar
from harness.used import used_jar

from servers.process import Process, end, start_java


@dataclass
class RestServer:
    """A running server. `stop` ends this process and no other."""

    process: Process
    uri: str

    def stop(self) -> None:
        end(self.process)


def start_rest_server(database: Path, warehouse: Path, log: Path) -> RestServer:
    """Starts the server over a JDBC catalog on SQLite; returns once it listens."""
    jars = [*build_jars("rest-server"), spark_jar("hadoop-client-api-*.jar")]
    jars.append(spark_jar("hadoop-client-runtime-*.jar"))
    jars += SPARK_JARS.glob("commons-logging-*.jar")  # Hadoop 3.3, of Spark 3.5, needs it
    used_jar("REST: Iceberg's reference server", jars, "iceberg-core")
    url = f"jdbc:sqlite:{database}?busy_timeout=30000"
    process, port = start_java("RestServer", jars, [url, warehouse], log)
    return RestServer(process, f"http://127.0.0.1:{port}")
