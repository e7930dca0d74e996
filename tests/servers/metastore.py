"""A Hive metastore in a process of its own, with locks, on 127.0.0.1 and a free port."""

from pathlib import Path

from harness.jars import SPARK_JARS, build_jars, spark_jar
from harness.used import used_jar

from servers.process import Server, start_java


def start_metastore(folder: Path, warehouse: Path) -> Server:
    """Starts it; its database and its log are in the folder."""
    folder.mkdir()
    hadoop = [spark_jar(f"hadoop-client-{part}-*.jar") for part in ("api", "runtime")]
    logging = [*SPARK_JARS.glob("slf4j-api-*.jar"), *SPARK_JARS.glob("jcl-over-slf4j-*.jar")]
    jars = [*build_jars("metastore-server"), *hadoop, *logging]
    used_jar("Hive metastore, a service", jars, "hive-standalone-metastore")
    arguments = [folder / "database", warehouse]
    process, port = start_java("MetastoreServer", jars, arguments, folder / "log", cwd=folder)
    return Server(process, f"thrift://127.0.0.1:{port}")
