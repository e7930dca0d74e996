"""What keys of columns cost in Spark's own Parquet and ORC files: AES-GCM and AES-CTR beside plaintext, by column.

    python benchmarks/column_keys.py [MILLIONS_OF_ROWS [ROUNDS]]

Spark, on one core, writes the same rows (a long, a double, two strings; uncompressed) as plaintext, with one key for
each column, and with one key for all, and reads each column of each. In each round every kind has its turn, in random
order; a first round warms up. Prints the seconds of plaintext (median and quartiles), and the ratios of the others to
plaintext of the same format and round (median and 90 % interval).
"""

import random
import shutil
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from _spark import new_keystore, took
from pyspark.sql import SparkSession
from suite.stats import quartiles, ratio

from pyspark_iceberg_crypto import OrcKeys, ParquetKeys, configure_spark

COLUMNS = ("id", "price", "name", "note")
EACH = dict.fromkeys(COLUMNS, "k1")
MEASURES = ("write", *(f"read {column}" for column in COLUMNS))


@dataclass(frozen=True)
class Kind:
    """A way to write files."""

    name: str
    format: str
    keys: ParquetKeys | OrcKeys
    against: str | None = None


CTR = "AES_GCM_CTR_V1"
PARQUET, ORC = "Parquet, plaintext", "ORC, plaintext"
KINDS = (
    Kind(PARQUET, "parquet", ParquetKeys(plaintext_writes=True)),
    Kind(
        "Parquet, AES_GCM_V1, a key for each column",
        "parquet",
        ParquetKeys(footer="k1", columns=EACH),
        PARQUET,
    ),
    Kind("Parquet, AES_GCM_V1, uniform", "parquet", ParquetKeys(uniform="k1"), PARQUET),
    Kind(
        f"Parquet, {CTR}, a key for each column",
        "parquet",
        ParquetKeys(footer="k1", columns=EACH, algorithm=CTR),
        PARQUET,
    ),
    Kind(f"Parquet, {CTR}, uniform", "parquet", ParquetKeys(uniform="k1", algorithm=CTR), PARQUET),
    Kind(ORC, "orc", OrcKeys(plaintext_writes=True)),
    Kind("ORC, AES-CTR, a key for each column", "orc", OrcKeys(columns=EACH), ORC),
)
Found = dict[tuple[str, str], list[float]]


def main(millions: float, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        folder = Path(name)
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = configure_spark(
            builder.config("spark.driver.memory", "2g"),
            type="hadoop",
            warehouse=name,
            kms=new_keystore(folder),
            parquet_columns=ParquetKeys(plaintext_writes=True),
            orc_columns=OrcKeys(plaintext_writes=True),
        ).getOrCreate()
        try:
            report(measured(spark, folder, int(millions * 1e6), rounds))
        finally:
            spark.stop()


def measured(spark: SparkSession, folder: Path, rows: int, rounds: int) -> Found:
    """Return seconds by what was done and the kind of file."""
    values = ("id", "rand(1) AS price", "uuid() AS name", "sha2(string(id), 256) AS note")
    source = spark.range(0, rows, 1, 1).selectExpr(*values).cache()
    source.count()
    found: Found = defaultdict(list)
    for number in range(rounds + 1):
        for kind in random.sample(KINDS, len(KINDS)):
            target = str(folder / "t")
            write = source.write.format(kind.format).options(**kind.keys.options())
            write = write.option("compression", "none")
            times = [took(lambda w=write, t=target: w.save(t))[1]]
            for column in COLUMNS:
                query = spark.read.format(kind.format).load(target).selectExpr(f"max({column})")
                times.append(took(query.collect)[1])
            shutil.rmtree(target)
            for what, value in zip(MEASURES, times, strict=True):
                if number:
                    found[what, kind.name].append(value)
    return found


def report(found: Found) -> None:
    print("| | " + " | ".join(MEASURES) + " |")
    print("|---" + "|--:" * len(MEASURES) + "|")
    for kind in KINDS:
        cells = []
        for what in MEASURES:
            values = found[what, kind.name]
            if kind.against is None:
                cells.append(f"{quartiles(values).text(2)} s")
            else:
                cells.append(ratio(values, found[what, kind.against]).text(2))
        print(f"| {kind.name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    given = [*sys.argv[1:], *("4", "11")[len(sys.argv) - 1 :]]
    main(float(given[0]), int(given[1]))
