"""What it takes to verify a catalog of many small tables and a large one, and whether the small ones wait for it.

    python benchmarks/catalog_scale.py [--small N ...] [--middle N] [--large N] [--threads N ...]

A JDBC catalog (SQLite) has N small tables of two data files, which the driver checks by itself, some tables of 100
files and a large one, which take Spark jobs. Data files are hard links to one. The large table is the first by name,
the tables of 100 files come next. Spark has two cores. Prints for each number of threads: seconds, tables a second,
when the last small table, the last one of 100 files and the large one were done, by how much the driver's heap grew
(after a full collection), and its peak, garbage included.
"""

import argparse
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from _spark import java_table
from suite.session import session
from verify_scale import heap_in_use, peak_heap, reset_peak

from pyspark_iceberg_crypto import VerifyTablesReport, verify_catalog

CATALOG = "enc_jdbc"
FILES = {"small": 2, "middle": 100}
BATCH = 5_000


class Catalog:
    """A namespace for each number of small tables."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        jvm = spark._jvm
        self.tables = jvm.io.icebergcrypto.benchmarks.Tables
        self.catalog = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(
            spark._jsparkSession, CATALOG
        )
        spark.sql(f"CREATE NAMESPACE {CATALOG}.first")
        spark.sql(
            f"CREATE TABLE {CATALOG}.first.t (id BIGINT) USING iceberg TBLPROPERTIES ('encryption.key-id'='k1')"
        )
        spark.sql(f"INSERT INTO {CATALOG}.first.t VALUES (1)")
        table = java_table(spark, f"{CATALOG}.first.t")
        self.schema, self.file = table.schema(), self.tables.first(table)

    def make(self, small: int, middle: int, large: int) -> str:
        """Make the tables; return the name of their namespace."""
        namespace = f"of{small}"
        self.spark.sql(f"CREATE NAMESPACE {CATALOG}.{namespace}")
        for name, count, files in (
            ("large", 1, large),
            ("middle", middle, FILES["middle"]),
            ("small", small, FILES["small"]),
        ):
            self.tables.many(
                self.catalog, namespace, name, count, self.schema, self.file, files, BATCH
            )
        return f"{CATALOG}.{namespace}"

    def verify(self, namespace: str, threads: int) -> str:
        """Verify them; return a row of the table."""
        before = heap_in_use(self.spark)
        reset_peak(self.spark)
        start = time.time()
        report = verify_catalog(self.spark, namespace, threads=threads, progress=False)
        seconds = time.time() - start
        peak = peak_heap(self.spark)
        assert report.ok, report
        grown = heap_in_use(self.spark) - before
        done = [f"{ended(report, name) - start:.1f}" for name in ("small", "middle", "large")]
        rate = len(report.reports) / seconds
        cells = (f"{seconds:.1f}", f"{rate:.0f}", *done, f"{grown:.0f}", f"{peak:.0f}")
        return " | ".join(cells)


def ended(report: VerifyTablesReport, name: str) -> float:
    """When the last table with such a name was done, in seconds of the epoch."""
    return max(
        datetime.fromisoformat(one.ended_at.replace("Z", "+00:00")).timestamp()
        for one in report.reports
        if one.table.rpartition(".")[2].startswith(name)
    )


def main(small: Sequence[int], middle: int, large: int, threads: Sequence[int]) -> None:
    with session(2, "2g") as (spark, _):
        catalog = Catalog(spark)
        verify_catalog(spark, catalog.make(0, 2, 200), progress=False)  # warms up
        print(f"{middle} tables of 100 files, one of {large:,}; two cores; seconds\n")
        print(
            "| small tables | threads | s | tables/s | last small one | last of 100 files | large one"
            " | heap, MB | peak, MB |"
        )
        print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for count in small:
            namespace = catalog.make(count, middle, large)
            for number in threads:
                print(f"| {count:,} | {number} | {catalog.verify(namespace, number)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What it takes to verify a catalog.")
    parser.add_argument("--small", type=int, nargs="*", default=[1_000])
    parser.add_argument("--middle", type=int, default=10)
    parser.add_argument("--large", type=int, default=20_000)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 8])
    given = parser.parse_args()
    main(given.small, given.middle, given.large, given.threads)
