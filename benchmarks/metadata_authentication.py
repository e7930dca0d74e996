"""What authenticated metadata costs: loads and commits of a table with many snapshots, with and without.

    python benchmarks/metadata_authentication.py [SNAPSHOTS [ROUNDS]]

Two tables on Hadoop catalogs, of which one authenticates its metadata, are measured in turns in one JVM. Prints
medians and quartiles, and the ratio of the medians.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _spark import grow, new_keystore, start_spark
from pyspark.sql import SparkSession

TABLES = {"with": "require", "without": "off"}
"""The tables, and what encryption.metadata-authentication is for each."""


def main(snapshots: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        folder = Path(name)
        keys = new_keystore(folder)
        spark = start_spark(folder, keys)
        try:
            measure(spark, {"warehouse": name, **keys.properties()}, snapshots, rounds)
        finally:
            spark.stop()


def measure(spark: SparkSession, properties: dict[str, str], snapshots: int, rounds: int) -> None:
    catalogs = {name: open_catalog(spark, properties, choice) for name, choice in TABLES.items()}
    tables = {name: create(spark, catalog, name) for name, catalog in catalogs.items()}
    for table in tables.values():
        grow(table, snapshots)

    file = Path(tables["with"].operations().current().metadataFileLocation().removeprefix("file:"))
    kilobytes = file.stat().st_size / 1000
    print(f"{snapshots} snapshots, metadata.json of {kilobytes:.0f} kB, {rounds} rounds")
    loads = {name: loading(spark, catalogs[name], name) for name in TABLES}
    commits = {name: committing(tables[name]) for name in TABLES}
    for what, calls in (("load", loads), ("commit", commits)):
        report(what, calls, rounds)


def open_catalog(spark: SparkSession, properties: dict[str, str], choice: str) -> Any:
    """Our catalog in the session's JVM; its name keeps the tables of the two apart."""
    catalog = spark._jvm.io.icebergcrypto.catalog.EncryptedCatalog()
    catalog.setConf(spark._jsc.hadoopConfiguration())
    given = {"encryption.catalog-type": "hadoop", "encryption.metadata-authentication": choice}
    catalog.initialize("lake", {**properties, **given})
    return catalog


def identifier(spark: SparkSession, name: str) -> Any:
    return spark._jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"db.{name}")


def create(spark: SparkSession, catalog: Any, name: str) -> Any:
    iceberg = spark._jvm.org.apache.iceberg
    schema = iceberg.SchemaParser.fromJson(
        '{"type": "struct", "fields": [{"id": 1, "name": "id", "required": false, "type": "long"}]}'
    )
    builder = catalog.buildTable(identifier(spark, name), schema)
    return builder.withProperty("encryption.key-id", "k1").create()


def loading(spark: SparkSession, catalog: Any, name: str) -> Callable[[], object]:
    table = identifier(spark, name)
    return lambda: catalog.loadTable(table).schema()


def committing(table: Any) -> Callable[[], object]:
    return lambda: table.updateProperties().set("touched", str(time.time_ns())).commit()


def report(what: str, calls: dict[str, Callable[[], object]], rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 5):  # five to warm up
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn >= 5:
                times[name].append(1000 * (time.perf_counter() - start))
    for name, taken in times.items():
        low, median, high = statistics.quantiles(taken, n=4)
        print(f"{what:7} {name:8} {median:6.1f} ms  ({low:.1f} to {high:.1f})")
    ratio = statistics.median(times["with"]) / statistics.median(times["without"])
    print(f"{what:7} ratio    {ratio:6.2f}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [1000, 60][len(given) :]))
