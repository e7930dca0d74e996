"""How many requests to S3 a verification makes, beside the fewest that could do.

    python benchmarks/verify_requests.py [--files N]

A server that speaks S3's protocol runs on 127.0.0.1 behind a proxy, which counts requests by their kind. Two encrypted
tables, of N data files (100) and of twice as many in one commit, are verified at each depth, so that the difference is
what a data file costs and the rest is what a table costs. No file is larger than what is read at once (deep: 8 MiB).
The fewest: a file whose length, start and end are to be known takes one request, which reads it whole or gives its
length with its end; `magic` looks at both ends of a file without its content, which takes two.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from _spark import new_keystore
from harness.jars import build_jars
from servers.stores import ObjectStore, start_store

from pyspark_iceberg_crypto import configure_spark, verify_table

DEPTHS = {"magic": 2, "structure": 1, "deep": 1}


def main(files: int) -> None:
    with tempfile.TemporaryDirectory(prefix="verify-requests-") as name:
        folder = Path(name)
        store = start_store("s3", folder)
        try:
            os.environ.update(store.environment)
            spark = session(folder, store)
            tables = [make(spark, count) for count in (files, 2 * files)]
            print("| depth | requests for a table | for each data file | the fewest |")
            print("|---|---|---|--:|")
            for depth, fewest in DEPTHS.items():
                small, large = (counted(spark, store, table, depth) for table in tables)
                each = Counter({kind: large[kind] - small[kind] for kind in large})
                fixed = Counter({kind: small[kind] - each[kind] for kind in small})
                print(f"| `{depth}` | {told(fixed, 1)} | {told(each, files)} | {fewest} |")
            spark.stop()
        finally:
            store.stop()


def told(counts: Counter[str], of: int) -> str:
    parts = [f"{count / of:g} {kind}" for kind, count in sorted(counts.items()) if count]
    return ", ".join(parts) or "none"


def session(folder: Path, store: ObjectStore) -> SparkSession:
    jars = ",".join(map(str, [*store.jars, *build_jars("test-jars", "sqlite-jdbc-*.jar")]))
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    return configure_spark(
        builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR"),
        type="jdbc",
        uri=f"jdbc:sqlite:{folder}/lake.db?busy_timeout=30000",
        kms=new_keystore(folder),
        options={"jdbc.schema-version": "V1", **store.options},
    ).getOrCreate()


def make(spark: SparkSession, files: int) -> str:
    table = f"lake.db.t{files}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT) USING iceberg TBLPROPERTIES ('encryption.key-id'='k1')"
    )
    spark.range(0, 10 * files, 1, files).writeTo(table).append()
    return table


def counted(spark: SparkSession, store: ObjectStore, table: str, depth: str) -> Counter[str]:
    spark.sql(f"REFRESH TABLE {table}")
    store.proxy.forget()
    flags = {} if depth == "magic" else {depth: True}
    with verify_table(spark, table, **flags, progress=False) as report:
        assert report.ok, str(report)
    return Counter(
        "LIST" if "list-type=" in asked else asked.partition(" ")[0]
        for asked in store.proxy.requests
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=100)
    main(parser.parse_args().files)
