"""What it costs to encrypt a table in place, as it grows, beside a plain copy of its rows.

    python benchmarks/encrypt_scale.py [--rounds N] [MIB ...]

MIB are sizes of the plaintext table (64 256 1024): Parquet files of about 32 MiB, of ids, numbers and text that hardly
compress. Each round makes a table of its own, copies it with CREATE TABLE ... AS SELECT into an encrypted table,
encrypts it in place, and purges its plaintext. Spark has two cores. Prints the median and range of the seconds of each,
and what encrypt_table takes of the copy: it also verifies all files and compares all rows.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from _spark import new_keystore, spread, start_spark, took
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import encrypt_table, purge_plaintext

FILE_MIB = 32
ROWS_PER_MIB = 16_000
COLUMNS = "id, rand(7) AS x, rand(8) AS y, sha2(cast(id AS string), 384) AS note"


def main(sizes: Sequence[int], rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="encrypt-scale-") as folder:
        keys = new_keystore(Path(folder))
        spark = start_spark(Path(folder) / "warehouse", keys, "local[2]", spark_log_level="ERROR")
        spark.sql("CREATE NAMESPACE lake.db")
        one_round(spark, 8)  # warms up
        print("| MiB | data files | copy (CTAS), s | encrypt_table, s | of the copy | purge, s |")
        print("|--:|--:|--:|--:|--:|--:|")
        for size in sizes:
            runs = [one_round(spark, size) for _ in range(rounds)]
            mib, files = runs[0][:2]
            copy, encrypted, purge = (spread([run[i] for run in runs]) for i in (2, 3, 4))
            ratio = statistics.median(run[3] / run[2] for run in runs)
            print(
                f"| {mib:,.0f} | {files:,} | {copy} | {encrypted} | {ratio:.1f} times | {purge} |",
                flush=True,
            )
        spark.stop()


def one_round(spark: SparkSession, size: int) -> tuple[float, int, float, float, float]:
    table = "lake.db.t"
    parts = max(1, size // FILE_MIB)
    spark.sql(
        f"CREATE TABLE {table} TBLPROPERTIES ('format-version'='2') AS"
        f" SELECT {COLUMNS} FROM range(0, {size * ROWS_PER_MIB}, 1, {parts})"
    )
    copy = took(
        lambda: spark.sql(
            f"CREATE TABLE {table}_copy TBLPROPERTIES ('encryption.key-id'='k1') AS SELECT * FROM {table}"
        )
    )[1]
    done, encrypted = took(lambda: encrypt_table(spark, table, "k1", progress=False))
    assert done.committed
    purge = took(lambda: purge_plaintext(spark, table, progress=False))[1]
    for name in (table, f"{table}_copy"):
        spark.sql(f"DROP TABLE {name} PURGE")
    return done.bytes / (1 << 20), done.files, copy, encrypted, purge


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What it costs to encrypt a table in place.")
    parser.add_argument("sizes", metavar="MIB", type=int, nargs="*", default=[64, 256, 1024])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    main(given.sizes, given.rounds)
