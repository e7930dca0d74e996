"""A Hive metastore in a process of its own, with locks, on 127.0.0.1 and a free port."""

from dataclasses import dataclass
from pathlib import Path

from harness.jars import SPARK_JARS, build_jars, spark_jar
from harness.used import used_jar

from servers.process import Process, end, start_java


@dataclass
class MetastoreServer:
    """A running metastore. `stop` ends this process and no other."""

    process: Process
    uri: str

    def stop(self) -> None:
        end(self.process)


def start_metastore(folder: Path, warehouse: Path) -> MetastoreServer:
    """Starts it; its database and its log are in the folder."""
    folder.mkdir()
    hadoop = [spark_jar(f"hadoop-client-{part}-*.jar") for part in ("api", "runtime")]
    logging = [*SPARK_JARS.glob("slf4j-api-*.jar"), *SPARK_JARS.glob("jcl-over-slf4j-*.jar")]
    jars = [*build_jars("metastore-server"), *hadoop, *logging]
    used_jar("Hive metastore, a service", jars, "hive-standalone-metastore")
    arguments = [folder / "database", warehouse]
    process, port = start_java("MetastoreServer", jars, arguments, folder / "log", cwd=folder)
    return MetastoreServer(process, f"thrift://127.0.0.1:{port}")
