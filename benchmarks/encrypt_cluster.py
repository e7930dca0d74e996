"""encrypt_table on a cluster whose driver and executors are killed again and again.

    python benchmarks/encrypt_cluster.py [--files N] [--group N] [--executors N] [--kills N] [--seed N]

A table of N files (10,000) of a row each is encrypted in groups of N files (500) by N executors (16), processes of one
core and 512 MB each (Spark's local-cluster), which share the cores of this machine. N times (10), at random moments, an
executor is killed (SIGKILL), and later the driver; then encrypt_table is called again. Fails if a row is lost or
doubled, if a file does not verify, or if more copies were lost than the groups under way had. Prints the seconds, with
the starts of Spark; the lost copies; all orphans; and the most that a garbage collection has left of the driver's heap
of 1 GB, in MB.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from _spark import java_table
from suite.session import settings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from harness.programs import wait_for
from harness.sessions import OtherSession, process_id, remove_orphans
from harness.world import World, make_world
from servers.cluster import spark_home

CATALOG, TABLE = "enc_hadoop", "enc_hadoop.db.t"
COPY = re.compile(r"/\d+-\d+-[0-9a-f-]{36}[^/]*\.parquet$")
IDS = "count(*), count(DISTINCT id), min(id), max(id)"
AT_ONCE = 2  # groups
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class Cluster:
    def __init__(self, given: argparse.Namespace, world: World) -> None:
        self.world, self.given, self.random = world, given, Random(given.seed)
        self.table = world.warehouse("hadoop") / "db" / "t"
        self.home = spark_home(world.root / "spark")  # where executors write
        conf = settings(world, 1, "1g")
        path = conf.pop("spark.jars").replace(",", os.pathsep) + f"{os.pathsep}{world.classes}"
        self.conf = conf | {
            "spark.driver.extraClassPath": path,
            "spark.executor.extraClassPath": path,
            "spark.executor.extraJavaOptions": JVM,
            "spark.executor.memory": "512m",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.sql.shuffle.partitions": str(given.executors),
            "spark.iceberg-crypto.encrypt.files-per-group": str(given.group),
            "spark.iceberg-crypto.encrypt.groups-at-once": str(AT_ONCE),
        }

    def session(self, master: str, options: str = "") -> OtherSession:
        conf = {"spark.master": master, "spark.driver.extraJavaOptions": f"{JVM} {options}"}
        home = {"SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1"}
        return OtherSession(self.conf | conf, home, seconds=36_000)

    def driver(self) -> OtherSession:
        log = f"-Xlog:gc:file={self.world.root}/gc-%p.log"
        return self.session(f"local-cluster[{self.given.executors},1,512]", log)

    def groups(self) -> int:
        return len(list(self.table.glob("metadata/_encryption-*/group-*.json")))

    def kill(self, groups: int) -> None:
        """Calls encrypt_table; kills an executor, and the driver when so many groups are copied."""
        driver = self.driver()
        process = driver.do(process_id)
        executors: set[int] = set()
        ended: list[BaseException | None] = []
        call = threading.Thread(target=lambda: ended.append(failure(driver)))
        call.start()
        for enough, victims in ((groups - 1, children), (groups, lambda driver: [driver])):
            while self.groups() < enough and call.is_alive():
                time.sleep(0.05)
            call.join(3 * self.random.random())
            assert call.is_alive(), ended
            executors |= set(children(process))
            os.kill(self.random.choice(victims(process)), signal.SIGKILL)
        call.join()
        with suppress(Exception):
            driver.__exit__(None, None, None)
        wait_for(lambda: not any(Path(f"/proc/{one}").exists() for one in executors), 300)

    def run(self) -> str:
        files, kills, group = self.given.files, self.given.kills, self.given.group
        with self.session("local[2]") as session:
            session.do(make, files)
        begin = time.perf_counter()
        for moment in sorted(self.random.sample(range(1, files // group * 9 // 10), kills)):
            self.kill(moment)
            print(f"killed at {self.groups()}, {time.perf_counter() - begin:.0f} s", flush=True)
        with self.driver() as driver:
            assert failure(driver) is None
            seconds = round(time.perf_counter() - begin)
            lost = len(list(filter(COPY.search, map(str, (self.table / "data").iterdir())))) - files
            assert lost <= kills * (AT_ONCE * group + 1), lost
            [found] = driver.sql(f"SELECT {IDS} FROM {TABLE}")
            assert list(found.values()) == [files, files, 0, files - 1], found
            driver.sql(f"CALL {CATALOG}.system.purge_plaintext('db.t')")
            report = driver.verify(TABLE, deep=True, strays=True)
            assert report["ok"] and self.groups() == 0, report
            orphans = len(driver.do(remove_orphans, TABLE))
        logs = map(Path.read_text, self.world.root.glob("gc-*.log"))
        heap = max(map(int, re.findall(r"->(\d+)M\(", "".join(logs))))
        told = (files, files // group, kills, seconds, lost, orphans, heap)
        return f"| {' | '.join(f'{number:,}' for number in told)} |"


def make(spark: Any, files: int) -> None:
    """The table, of the numbers from 0."""
    spark.sql(f"CREATE NAMESPACE {CATALOG}.db")
    spark.sql(f"CREATE TABLE {TABLE} (id BIGINT) TBLPROPERTIES ('format-version'='2')")
    tables = spark._jvm.io.icebergcrypto.benchmarks.Tables
    tables.append(java_table(spark, TABLE), files, 10_000)


def failure(driver: OtherSession) -> BaseException | None:
    """That of encrypt_table; None: the table is encrypted."""
    try:
        driver.sql(f"CALL {CATALOG}.system.encrypt_table('db.t', 'k1')")
        return None
    except Exception as error:  # noqa: BLE001 (as Spark ends when it is killed)
        return error


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    usually = {"files": 10_000, "group": 500, "executors": 16, "kills": 10, "seed": 1}
    for name, usual in usually.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    with tempfile.TemporaryDirectory(prefix="encrypt-cluster-") as folder:
        cluster = Cluster(parser.parse_args(), make_world(Path(folder)))
        try:
            print(f"| files | groups | kills | s | lost | orphans | heap |\n{cluster.run()}")
        finally:
            cluster.world.rest.stop()
