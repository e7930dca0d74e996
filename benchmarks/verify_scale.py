"""What verification costs as a table grows, and what it takes of the driver's memory.

    python benchmarks/verify_scale.py [DEPTH [FILES ...]]

DEPTH is magic, structure or deep (magic); FILES are numbers of data files (1000 10000 100000). The files are hard links
to one small encrypted Parquet file, each with a path and an entry of its own, so this measures what a file costs beside
its bytes; benchmarks/deep_speed.py measures bytes. Spark is a standalone cluster on 127.0.0.1: a master and two
workers, each with an executor of one core and 640 MiB, and the driver has 1 GiB. Prints for each number: seconds, files
a second, the driver's heap at the end (after a full collection) and its peak; and draws the seconds.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _spark import new_keystore, start_spark
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from servers.cluster import standalone

BATCH = 10_000
ROUNDS = 3
WIDTH = 60


def main(depth: str, numbers: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        folder = Path(name)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        with standalone(folder) as master:
            spark = session(folder, master)
            try:
                rows = [(files, *measure(spark, files, depth)) for files in numbers]
            finally:
                spark.stop()
    longest = max(seconds for _, seconds, *_ in rows)
    print(f"\ndepth {depth}, driver 1 GiB, two executors; medians of {ROUNDS}")
    print(f"{'files':>9} {'seconds':>9} {'files/s':>9} {'heap MB':>9} {'peak MB':>9}")
    for files, seconds, heap, peak in rows:
        bar = "#" * max(1, round(WIDTH * seconds / longest))
        rate = files / seconds
        print(f"{files:>9,} {seconds:>9.1f} {rate:>9,.0f} {heap:>9.0f} {peak:>9.0f}  {bar}")
    if len(rows) > 1:
        (few, quick, *_), (many, slow, *_) = rows[0], rows[-1]
        print(f"{many / few:.0f} times the files took {slow / quick:.1f} times as long")


def session(folder: Path, master: str) -> SparkSession:
    spark = start_spark(
        folder / "warehouse",
        new_keystore(folder),
        master,
        spark_driver_memory="1g",
        spark_driver_host="127.0.0.1",
        spark_driver_bindAddress="127.0.0.1",
        spark_executor_memory="640m",
        spark_log_level="ERROR",
    )
    for jar in Path.home().glob(".ivy2*/jars/*iceberg-spark-runtime*.jar"):
        spark.sparkContext._jsc.addJar(str(jar))  # executors get spark.jars only, not the packages
    return spark


def measure(spark: SparkSession, files: int, depth: str) -> tuple[float, float, float]:
    table = make_table(spark, files)
    seconds = []
    peak = heap = 0.0
    for _ in range(ROUNDS):
        reset_peak(spark)
        start = time.perf_counter()
        with verify_table(spark, table, depth=depth, progress=False) as report:
            seconds.append(time.perf_counter() - start)
            peak = max(peak, peak_heap(spark))
            heap = max(heap, heap_in_use(spark))
            assert report.ok, report
            assert sum(count.files for count in report.counts if count.kind == "data") == files
    print(f"{files:,} files: {', '.join(f'{one:.1f} s' for one in seconds)}", flush=True)
    return statistics.median(seconds), heap, peak


def make_table(spark: SparkSession, files: int) -> str:
    """A table whose data files are links to the first one, listed with its key."""
    name = f"lake.db.t{files}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('encryption.key-id'='k1')")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id FROM range(100)")
    jvm: Any = spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    first = table.newScan().planFiles().iterator().next().file().copy()
    stored = Path(first.location().removeprefix("file:"))
    builder = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).copy(first)
    for begin in range(1, files, BATCH):
        append = table.newFastAppend()
        for number in range(begin, min(begin + BATCH, files)):
            path = stored.with_name(f"{number:07d}.parquet")
            link_or_copy(stored, path, copy=number == begin)
            append.appendFile(builder.withPath(str(path)).build())
        stored = stored.with_name(f"{begin:07d}.parquet")  # file systems limit links to one file
        append.commit()
    spark.sql(f"REFRESH TABLE {name}")
    return name


def link_or_copy(stored: Path, path: Path, copy: bool) -> None:
    """With the checksum that Hadoop keeps beside a local file."""
    for one in ("{}", ".{}.crc"):
        source = stored.with_name(one.format(stored.name))
        if source.exists():
            target = path.with_name(one.format(path.name))
            shutil.copy(source, target) if copy else os.link(source, target)


def heap_in_use(spark: SparkSession) -> float:
    """Megabytes in use after a full collection: what the driver keeps."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    used = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    return float(used.getUsed()) / 1e6


def pools(spark: SparkSession) -> list[Any]:
    jvm: Any = spark._jvm
    found = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return [pool for pool in found if str(pool.getType()) == "Heap memory"]


def reset_peak(spark: SparkSession) -> None:
    for pool in pools(spark):
        pool.resetPeakUsage()


def peak_heap(spark: SparkSession) -> float:
    """Megabytes at most in use, garbage included."""
    return sum(float(pool.getPeakUsage().getUsed()) for pool in pools(spark)) / 1e6


if __name__ == "__main__":
    main(
        sys.argv[1] if len(sys.argv) > 1 else "magic",
        [int(one) for one in sys.argv[2:]] or [1_000, 10_000, 100_000],
    )
