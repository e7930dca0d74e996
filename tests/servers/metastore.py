"""A Hive metastore in a process of its own, with locks, on 127.0.0.1 and a free port."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.jars import SPARK_JARS, build_jars, spark_jar
from harness.programs import wait_for_end
from harness.used import used_jar

from servers.rest import port_of


@dataclass
class MetastoreServer:
    """A running metastore. `stop` ends this process and no other."""

    process: "subprocess.Popen[str]"
    uri: str

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()  # the server ends when its input does
        wait_for_end(self.process)


def start_metastore(folder: Path, warehouse: Path) -> MetastoreServer:
    """Starts it; its database and its log are in the folder."""
    folder.mkdir()
    hadoop = [spark_jar(f"hadoop-client-{part}-*.jar") for part in ("api", "runtime")]
    logging = [*SPARK_JARS.glob("slf4j-api-*.jar"), *SPARK_JARS.glob("jcl-over-slf4j-*.jar")]
    jars = [*build_jars("metastore-server"), *hadoop, *logging]
    used_jar("Hive metastore, a service", jars, "hive-standalone-metastore")
    log = folder / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                *("java", "-Xmx512m", "-XX:TieredStopAtLevel=1"),
                *("-cp", ":".join(map(str, jars))),
                str(Path(__file__).with_name("MetastoreServer.java")),
                *(str(folder / "database"), str(warehouse)),
            ],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    return MetastoreServer(process, f"thrift://127.0.0.1:{port_of(process, log)}")
