"""What keys of columns cost in Spark's own Parquet files: AES-GCM and AES-CTR beside plaintext, for each column.

    python benchmarks/parquet_columns.py [MILLIONS_OF_ROWS [ROUNDS]]

Spark, on one core, writes the same rows (a long, a double, two strings; uncompressed) as plaintext, with one key for
each column, and with one key for all, and reads each column of each. Rounds take turns. Prints medians of seconds, as a
share of plaintext, of the whole write and of reading each column.
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from _spark import new_keystore
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import ParquetKeys, configure_spark

COLUMNS = ("id", "price", "name", "note")
EACH = dict.fromkeys(COLUMNS, "k1")
KINDS = {
    "plaintext": ParquetKeys(plaintext_writes=True),
    "AES_GCM_V1, a key for each column": ParquetKeys(footer="k1", columns=EACH),
    "AES_GCM_V1, uniform": ParquetKeys(uniform="k1"),
    "AES_GCM_CTR_V1, a key for each column": ParquetKeys(
        footer="k1", columns=EACH, algorithm="AES_GCM_CTR_V1"
    ),
    "AES_GCM_CTR_V1, uniform": ParquetKeys(uniform="k1", algorithm="AES_GCM_CTR_V1"),
}


def main(millions: float, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        folder = Path(name)
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = configure_spark(
            builder.config("spark.driver.memory", "2g"),
            type="hadoop",
            warehouse=name,
            kms=new_keystore(folder),
            parquet_columns=KINDS["plaintext"],
        ).getOrCreate()
        try:
            report(measured(spark, folder, int(millions * 1e6), rounds))
        finally:
            spark.stop()


def measured(
    spark: SparkSession, folder: Path, rows: int, rounds: int
) -> dict[tuple[str, str], list[float]]:
    """Return seconds by what was done and the kind of file. The first round only warms up."""
    values = ("id", "rand(1) AS price", "uuid() AS name", "sha2(string(id), 256) AS note")
    source = spark.range(0, rows, 1, 1).selectExpr(*values).cache()
    source.count()
    found = defaultdict(list)
    for number in range(rounds + 1):
        for kind, keys in KINDS.items():
            target = str(folder / "t")
            write = source.write.options(**keys.options()).option("compression", "none")
            took = {"write": seconds(lambda w=write, t=target: w.parquet(t))}
            for column in COLUMNS:
                query = spark.read.parquet(target).selectExpr(f"max({column})")
                took[f"read {column}"] = seconds(query.collect)
            shutil.rmtree(target)
            for what, value in took.items():
                if number:
                    found[what, kind].append(value)
    return found


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def report(found: dict[tuple[str, str], list[float]]) -> None:
    whats = list(dict.fromkeys(what for what, _ in found))
    print("| | " + " | ".join(whats) + " |")
    print("|---" * (len(whats) + 1) + "|")
    for kind in KINDS:
        cells = []
        for what in whats:
            median = statistics.median(found[what, kind])
            share = median / statistics.median(found[what, "plaintext"])
            cells.append(f"{median:.2f} s" if kind == "plaintext" else f"{share:.2f}")
        print(f"| {kind} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    given = [*sys.argv[1:], *("4", "5")[len(sys.argv) - 1 :]]
    main(float(given[0]), int(given[1]))
