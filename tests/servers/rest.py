"""Iceberg's REST reference server in a process of its own, on 127.0.0.1 and a free port."""

from pathlib import Path

from harness.jars import SPARK_JARS, build_jars, spark_jar
from harness.used import used_jar

from servers.process import Server, start_java


def start_rest_server(database: Path, warehouse: Path, log: Path) -> Server:
    """Starts the server over a JDBC catalog on SQLite; returns once it listens."""
    jars = [*build_jars("rest-server"), spark_jar("hadoop-client-api-*.jar")]
    jars.append(spark_jar("hadoop-client-runtime-*.jar"))
    jars += SPARK_JARS.glob("commons-logging-*.jar")  # Hadoop 3.3, of Spark 3.5, needs it
    used_jar("REST: Iceberg's reference server", jars, "iceberg-core")
    url = f"jdbc:sqlite:{database}?busy_timeout=30000"
    process, port = start_java("RestServer", jars, [url, warehouse], log)
    return Server(process, f"http://127.0.0.1:{port}")
