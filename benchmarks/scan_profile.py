"""What encryption costs scans and writes of Parquet in Spark, and where the time goes.

    python benchmarks/scan_profile.py [MILLIONS_OF_ROWS [ROUNDS [FOLDER]]]

Writes a table like TPC-H's lineitem in plaintext and encrypted, each with Iceberg's defaults and with other sizes of
pages. Then one thread scans them (all columns; one column) and writes them again, in turns and in random order.
Prints CPU seconds of the JVM as medians and quartiles, and the ratio to plaintext, pair by pair. With a FOLDER,
async-profiler (Spark fetches it from Maven Central) leaves there the stacks of plaintext and encrypted runs, and
prints what each kind of work takes: milliseconds of CPU time of a run, and in percent of a plaintext run what it takes
more when the table is encrypted. Needs Linux, whose /proc tells CPU time.
"""

import random
import re
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from _spark import cpu_seconds, new_keystore, start_spark
from pyspark.sql import DataFrame, SparkSession

PROFILER = "tools.profiler:async-profiler:4.1"

MANY_ROWS = {"write.parquet.page-row-limit": "1000000"}
ENCRYPTED = {"encryption.key-id": "k1"}
TABLES = {
    "plaintext": {},
    "encrypted": ENCRYPTED,
    "plain_long_pages": MANY_ROWS,
    "encrypted_long_pages": ENCRYPTED | MANY_ROWS,
}
"""The tables and their properties. The first is what the others are compared with."""

REPEAT = {"scan": 1, "narrow scan": 5, "write": 1}
"""What is measured, and how often in a row."""

WORK = {
    "JIT compiler": r"CompileBroker",
    "garbage collection": r"GangWorker|ConcurrentGCThread|VM_G1|G1CollectForAllocation|G1Service",
    "cipher: set-up": r"Cipher\.init|GaloisCounterMode\.(engineInit|init)|GCMParameterSpec|Cipher\.getInstance",
    "cipher: data": r"GaloisCounterMode|AESCrypt|GHASH|ghash|GCTR",
    "Parquet's decryptor, its array": r"AesGcmDecryptor|AesGcmEncryptor",
    "a page copied for it": r"BytesInput.*\.toByteArray.*BytesInput\$\w+BytesInput\.writeAllTo",
    "footers": r"ParquetFileReader\.(readFooter|<init>)|ParquetMetadataConverter",
    "compression": r"[Cc]ompress|[Zz]std|ZSTD",
    "storage": r"FSData|RawLocalFileSystem|ChecksumFileSystem|H[12]SeekableInputStream",
    "Parquet's encoding": r"org/apache/iceberg/(arrow|parquet|spark)|org/apache/parquet",
}
"""Which frames, anywhere in a stack, count for what: the first that matches."""

COLUMNS = """
    id DIV 4 AS l_orderkey, CAST(rand() * 200000 AS BIGINT) AS l_partkey, CAST(rand() * 10000 AS BIGINT) AS l_suppkey,
    CAST(id % 4 AS INT) AS l_linenumber, CAST(1 + rand() * 50 AS DECIMAL(12, 2)) AS l_quantity,
    CAST(900 + rand() * 100000 AS DECIMAL(12, 2)) AS l_extendedprice, CAST(rand() / 10 AS DECIMAL(12, 2)) AS l_discount,
    CAST(rand() / 12 AS DECIMAL(12, 2)) AS l_tax, substr('ANR', CAST(1 + rand() * 3 AS INT), 1) AS l_returnflag,
    substr('OF', CAST(1 + rand() * 2 AS INT), 1) AS l_linestatus,
    date_add(DATE'1992-01-01', CAST(rand() * 2500 AS INT)) AS l_shipdate,
    date_add(DATE'1992-01-01', CAST(rand() * 2500 AS INT)) AS l_commitdate,
    element_at(array('AIR', 'FOB', 'MAIL', 'RAIL', 'SHIP', 'TRUCK'), CAST(1 + rand() * 6 AS INT)) AS l_shipmode,
    concat('carefully ', substr(md5(CAST(id AS STRING)), 1, 20)) AS l_comment"""


class Benchmark:
    """A session with the tables."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark = spark
        self.java: Any = spark._jvm
        self.source = f"{folder}/source"
        spark.range(0, rows, 1, 1).createOrReplaceTempView("ids")
        spark.sql(f"SELECT {COLUMNS} FROM ids").write.parquet(self.source)
        for table in TABLES:
            self.write(table, table)
            count, size = spark.sql(
                f"SELECT count(*), sum(file_size_in_bytes) FROM lake.db.{table}.files"
            ).first() or (0, 0)
            print(f"{table}: {count} files, {size / 1e6:.1f} MB", flush=True)

    def write(self, table: str, name: str) -> None:
        writer = self.spark.read.parquet(self.source).coalesce(1).writeTo(f"lake.db.{name}")
        for key, value in TABLES[table].items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def run(self, what: str, table: str) -> float:
        """CPU seconds of one."""
        start = cpu_seconds(self.java)
        for _ in range(REPEAT[what]):
            if what == "write":
                self.write(table, "copy")
            else:
                data = self.spark.table(f"lake.db.{table}")
                scan(data if what == "scan" else data.select("l_extendedprice"))
        taken = cpu_seconds(self.java) - start
        if what == "write":
            self.spark.sql("DROP TABLE lake.db.copy PURGE")
        return taken / REPEAT[what]

    def measure(self, what: str, rounds: int) -> None:
        taken: dict[str, list[float]] = {table: [] for table in TABLES}
        for turn in range(rounds + 2):  # two to warm up
            for table in random.sample(list(TABLES), len(TABLES)):
                seconds = self.run(what, table)
                if turn >= 2:
                    taken[table].append(seconds)
        base = next(iter(taken.values()))
        for table, seconds in taken.items():
            low, median, high = statistics.quantiles(seconds, n=4)
            ratios = [a / b for a, b in zip(seconds, base, strict=True)]
            first, middle, last = statistics.quantiles(ratios, n=4)
            print(
                f"{what:12} {table:21} {median:6.3f} s CPU ({low:.3f} to {high:.3f})"
                f"   {middle:.3f} of plaintext ({first:.3f} to {last:.3f})",
                flush=True,
            )

    def profile(self, what: str, rounds: int, folder: Path) -> None:
        profiler = self.java.one.profiler.AsyncProfiler.getInstance()
        pair = ("plaintext", "encrypted")
        milliseconds = {table: dict.fromkeys([*WORK, "all else"], 0.0) for table in pair}
        for turn in range(rounds):
            for table in random.sample(pair, len(pair)):
                file = folder / f"{what.replace(' ', '-')}-{table}-{turn}.collapsed"
                profiler.execute("start,event=cpu,interval=500us")
                self.run(what, table)
                profiler.execute(f"stop,file={file},collapsed")
                for kind, count in kinds(file).items():
                    milliseconds[table][kind] += count / 2 / rounds / REPEAT[what]
        before, after = (milliseconds[table] for table in pair)
        total = sum(before.values())
        print(f"{what}: ms of CPU time{'plaintext':>22}{'encrypted':>11}{'more, of all':>14}")
        for kind in before:
            more = 100 * (after[kind] - before[kind]) / total
            print(f"    {kind:32}{before[kind]:11.0f}{after[kind]:11.0f}{more:+12.1f} %")
        more = 100 * (sum(after.values()) - total) / total
        print(f"    {'all':32}{total:11.0f}{sum(after.values()):11.0f}{more:+12.1f} %", flush=True)


def kinds(file: Path) -> Counter[str]:
    """The samples of a profile by the kind of work."""
    found: Counter[str] = Counter()
    for line in file.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        kind = next((kind for kind, frame in WORK.items() if re.search(frame, stack)), "all else")
        found[kind] += int(count)
    return found


def scan(data: DataFrame) -> None:
    data.write.format("noop").mode("overwrite").save()


def main(millions: float, rounds: int, folder: Path | None) -> None:
    settings = {"spark_driver_memory": "4g", "spark_ui_showConsoleProgress": "false"}
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        settings["spark_jars_packages"] = PROFILER
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        spark = start_spark(Path(name), new_keystore(Path(name)), **settings)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            benchmark = Benchmark(spark, Path(name), int(millions * 1e6))
            for what in REPEAT:
                benchmark.measure(what, rounds)
            for what in REPEAT if folder else ():
                benchmark.profile(what, rounds, folder or Path())
        finally:
            spark.stop()


if __name__ == "__main__":
    given = sys.argv[1:] + ["6", "9", ""][len(sys.argv) - 1 :]
    main(float(given[0]), int(given[1]), Path(given[2]) if given[2] else None)
