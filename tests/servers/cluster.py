"""Spark as a cluster: a driver and two executors, each a JVM of its own."""

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.jars import BUILT, SPARK_JARS, build_jars, our_jar
from harness.programs import (
    START_SECONDS,
    free_port,
    start_spark,
    wait_for_end,
    wait_until_it_listens,
)
from harness.sessions import OtherSession
from harness.world import World


def spark_home(folder: Path) -> Path:
    """Spark by another path: a local-cluster's executors work and print below their Spark's folder."""
    folder.mkdir()
    for part in SPARK_JARS.parent.iterdir():
        (folder / part.name).symlink_to(part)
    return folder


def cluster_conf(java: Sequence[str] = (), jars: Sequence[Path] = ()) -> dict[str, str]:
    """Spark's configuration, with further options for each JVM and further jars."""
    options = " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *java])
    every = [our_jar(), *build_jars("test-jars", "iceberg-spark*.jar"), *jars]
    return {
        "spark.master": "local-cluster[2,1,768]",
        "spark.executor.memory": "640m",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": str(build_jars("test-jars", "sqlite-jdbc-*.jar")[0]),
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
        "spark.jars": ",".join(map(str, every)),
        "spark.sql.extensions": ",".join(BUILT.extensions),
        "spark.sql.shuffle.partitions": "2",
        "spark.iceberg-crypto.verify.files-on-driver": "0",
        "spark.ui.enabled": "false",
    }


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """A standalone cluster on 127.0.0.1 as long as the block runs: a master, and workers of one core and 1 GiB.

    Each is a process of its own, and so is each executor. Logs and work are in the folder. Gives the master's URL.
    """
    port = free_port()
    at = ["--host", "127.0.0.1", "--webui-port", "0"]
    started: list[subprocess.Popen[Any]] = []

    def start(role: str, *arguments: str) -> Path:
        log = folder / f"{len(started)}.log"
        command = [f"org.apache.spark.deploy.{role}", *at, *arguments]
        started.append(start_spark("spark-class", command, log))
        return log

    master = f"spark://127.0.0.1:{port}"
    try:
        log = start("master.Master", "--port", str(port))
        wait_until_it_listens(started[0], port, log)
        each = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder)]
        logs = [start("worker.Worker", *each, master) for _ in range(workers)]
        end = time.monotonic() + START_SECONDS
        while not all("Successfully registered with master" in log.read_text() for log in logs):
            if time.monotonic() > end:
                raise RuntimeError(f"a worker did not start: {logs[0].read_text()[-4000:]}")
            time.sleep(0.1)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
            wait_for_end(process)


@contextmanager
def session_on_cluster(
    world: World, folder: Path, more: Mapping[str, str]
) -> Iterator[OtherSession]:
    """A session in a process of its own, on a standalone cluster, with all catalogs and these settings."""
    with standalone(folder) as master:
        conf = {
            **world.session_conf(metastore=folder / "metastore"),
            "spark.master": master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "640m",
            "spark.executor.extraClassPath": str(world.classes),
            **more,
        }
        with OtherSession(conf) as session:
            yield session
