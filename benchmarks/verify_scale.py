"""What verification costs as a table grows, and what it takes of the driver's memory.

    python benchmarks/verify_scale.py [--depth DEPTH]... [--plot FILE.svg] [--snapshots N] [FILES ...]

Depths are magic, structure and deep (all); FILES are numbers of data files (1000 10000 100000). The files are hard
links to one small encrypted Parquet file, each with a path and an entry of its own, so this measures what a file costs
beside its bytes; benchmarks/deep_speed.py measures bytes. Spark is a standalone cluster on 127.0.0.1: a master and two
workers, each with an executor of one core and 640 MiB, and the driver has 1 GiB. Prints for each number: seconds
(median and range of three runs), files a second, the driver's heap at the end (after a full collection) and its peak.
--plot draws the seconds (needs the extra `bench`). --snapshots verifies, in place of that, all snapshots of a table of
one file that has N of them, and 10 earlier metadata files.
"""

import argparse
import importlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _spark import grow, java_table, new_keystore, start_spark
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from servers.cluster import standalone

BATCH = 10_000
ROUNDS = 3
DEPTHS = ("magic", "structure", "deep")


@dataclass
class Cost:
    """Of one verification: seconds of each run; the driver's heap in MB, kept and at most."""

    depth: str
    files: int
    seconds: list[float]
    heap: float
    peak: float

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def main(depths: Sequence[str], numbers: Sequence[int], plot: Path | None, snapshots: int) -> None:
    pyplot = importlib.import_module("matplotlib.pyplot") if plot else None
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        folder = Path(name)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        with standalone(folder) as master:
            spark = session(folder, master)
            try:
                warm_up(spark, depths)
                if snapshots:
                    measure_snapshots(spark, snapshots)
                    return
                for files in numbers:
                    table = make_table(spark, files)
                    costs += [measure(spark, table, files, depth) for depth in depths]
            finally:
                spark.stop()
    for depth in depths:
        tell(depth, [cost for cost in costs if cost.depth == depth])
    if plot:
        draw(pyplot, costs, plot)


def tell(depth: str, costs: list[Cost]) -> None:
    print(f"\ndepth {depth}, driver 1 GiB, two executors; medians of {ROUNDS}")
    print(
        f"{'files':>9} {'seconds':>9} {'(range)':>16} {'files/s':>9} {'heap MB':>9} {'peak MB':>9}"
    )
    for cost in costs:
        spread = f"({min(cost.seconds):.1f} to {max(cost.seconds):.1f})"
        print(
            f"{cost.files:>9,} {cost.median:>9.1f} {spread:>16} {cost.files / cost.median:>9,.0f}"
            f" {cost.heap:>9.0f} {cost.peak:>9.0f}"
        )
    first, last = costs[0], costs[-1]
    if first is not last:
        times, longer = last.files / first.files, last.median / first.median
        print(f"{times:.0f} times the files took {longer:.1f} times as long")


def draw(pyplot: Any, costs: list[Cost], plot: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for depth in dict.fromkeys(cost.depth for cost in costs):
        some = [cost for cost in costs if cost.depth == depth]
        files = [cost.files for cost in some]
        axes.fill_between(
            files, [min(c.seconds) for c in some], [max(c.seconds) for c in some], alpha=0.2
        )
        axes.plot(files, [cost.median for cost in some], marker="o", label=depth)
    largest = max(costs, key=lambda cost: (cost.files, cost.median))
    start = min(cost.files for cost in costs)
    axes.plot(
        [start, largest.files],
        [largest.median * start / largest.files, largest.median],
        linestyle=":",
        color="gray",
        label="proportional",
    )
    axes.set(xscale="log", yscale="log", xlabel="data files", ylabel="seconds")
    axes.set_title("Verification: two executors of one core, driver of 1 GiB")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(plot, bbox_inches="tight", metadata={"Date": None})


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


def flags(depth: str) -> dict[str, Any]:
    return {} if depth == "magic" else {depth: True}


def warm_up(spark: SparkSession, depths: Sequence[str]) -> None:
    table = make_table(spark, 300)
    for depth in depths:
        verify_table(spark, table, **flags(depth), progress=False).close()


def measure(spark: SparkSession, table: str, files: int, depth: str) -> Cost:
    cost = Cost(depth, files, [], 0.0, 0.0)
    for _ in range(ROUNDS):
        reset_peak(spark)
        start = time.perf_counter()
        with verify_table(spark, table, **flags(depth), progress=False) as report:
            cost.seconds.append(time.perf_counter() - start)
            cost.peak = max(cost.peak, peak_heap(spark))
            cost.heap = max(cost.heap, heap_in_use(spark))
            assert report.ok, report
            assert sum(count.files for count in report.counts if count.kind == "data") == files
    print(f"{depth}, {files:,}: {', '.join(f'{one:.1f} s' for one in cost.seconds)}", flush=True)
    return cost


def measure_snapshots(spark: SparkSession, snapshots: int) -> None:
    table = make_table(spark, 1)
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('write.metadata.previous-versions-max'='10',"
        f" 'write.metadata.delete-after-commit.enabled'='true')"
    )
    grow(java_table(spark, table), snapshots - 1)
    spark.sql(f"REFRESH TABLE {table}")
    for all_snapshots in (False, True):
        seconds = []
        for _ in range(ROUNDS):
            reset_peak(spark)
            start = time.perf_counter()
            with verify_table(spark, table, all_snapshots=all_snapshots, progress=False) as report:
                seconds.append(time.perf_counter() - start)
                peak, heap = peak_heap(spark), heap_in_use(spark)
                assert report.ok, report
                lists = sum(one.files for one in report.counts if one.kind == "manifest list")
        print(
            f"{snapshots:,} snapshots, {all_snapshots=}: {lists:,} manifest lists, "
            f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}), "
            f"heap {heap:.0f} MB, peak {peak:.0f} MB",
            flush=True,
        )


def make_table(spark: SparkSession, files: int) -> str:
    """A table whose data files are links to the first one, listed with its key."""
    name = f"lake.db.t{files}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('encryption.key-id'='k1')")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id FROM range(100)")
    jvm: Any = spark._jvm
    table = java_table(spark, name)
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
    parser = argparse.ArgumentParser(description="What verification costs as a table grows.")
    parser.add_argument("--depth", action="append", choices=DEPTHS)
    parser.add_argument("--plot", type=Path, help="draw the seconds into this file")
    parser.add_argument("--snapshots", type=int, default=0, metavar="N")
    parser.add_argument("files", nargs="*", type=int)
    given = parser.parse_args()
    numbers = given.files or [1_000, 10_000, 100_000]
    main(given.depth or DEPTHS, numbers, given.plot, given.snapshots)
