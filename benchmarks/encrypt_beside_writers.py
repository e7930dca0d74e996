"""How long encrypt_table takes while others commit to the table all the time.

    python benchmarks/encrypt_beside_writers.py [--files N] [SECONDS ...]

SECONDS are times between two commits (10 2 1): a thread appends a row so often, regularly. For each, a table of N small
files (100) is encrypted beside it. Prints the seconds that it took, the commits that came in meanwhile, and the commits
that were refused because the table had become an encrypted one: they are made again, and no row may be lost or doubled.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

from _spark import new_keystore, start_spark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import IcebergCryptoError, encrypt_table


class Writer(threading.Thread):
    """Appends the numbers from 0, each in a commit of its own, until it is stopped."""

    def __init__(self, spark: SparkSession, table: str, period: float) -> None:
        super().__init__(daemon=True)
        self.spark, self.table, self.period = spark.newSession(), table, period
        self.commits = self.refused = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        due = time.monotonic()
        while not self.stopped.is_set():
            try:
                self.spark.sql(f"INSERT INTO {self.table} VALUES ({self.commits}, 'written')")
                self.commits += 1
            except (IcebergCryptoError, PySparkException):
                self.refused += 1
                self.spark.sql(f"REFRESH TABLE {self.table}")
            due += self.period
            self.stopped.wait(max(0.0, due - time.monotonic()))


def main(files: int, periods: list[float]) -> None:
    with tempfile.TemporaryDirectory(prefix="encrypt-beside-") as folder:
        keys = new_keystore(Path(folder))
        spark = start_spark(Path(folder) / "warehouse", keys, "local[2]", spark_log_level="ERROR")
        spark.sql("CREATE NAMESPACE lake.db")
        beside(spark, 2, 5)  # warms up
        print("| a commit every | encrypt_table, s | commits meanwhile | refused once | result |")
        print("|--:|--:|--:|--:|---|")
        for period in periods:
            print(f"| {period:g} s | {beside(spark, files, period)} |", flush=True)
        spark.stop()


def beside(spark: SparkSession, files: int, period: float) -> str:
    table = f"lake.db.t{time.time_ns()}"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, what STRING) USING iceberg")
    spark.range(-files, 0, 1, files).selectExpr("id", "'there' AS what").writeTo(table).append()
    writer = Writer(spark, table, period)
    writer.start()
    while not writer.commits:
        time.sleep(0.01)
    before, start = writer.commits, time.perf_counter()
    try:
        result = encrypt_table(spark, table, "k1").committed
    except IcebergCryptoError as error:
        result = error.message
    seconds, commits = time.perf_counter() - start, writer.commits - before
    time.sleep(2 * period)
    writer.stopped.set()
    writer.join()
    rows = [row.id for row in spark.sql(f"SELECT id FROM {table} ORDER BY id").collect()]
    assert rows == list(range(-files, writer.commits)), (rows, writer.commits)
    return f"{seconds:.1f} | {commits} | {writer.refused} | {'encrypted' if result is True else result}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", type=float, nargs="*", default=[10, 2, 1])
    parser.add_argument("--files", type=int, default=100)
    given = parser.parse_args()
    main(given.files, given.seconds)
