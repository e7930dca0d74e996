"""What the benchmarks share: a keystore; Spark with a Hadoop catalog, `lake`, of which it has the keys; and clocks."""

import gc
import os
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import Keystore, Kms, configure_spark

_AT_ONCE = 100  # each change of a transaction keeps the metadata before it


def new_keystore(folder: Path) -> Keystore:
    """With a master key k1."""
    password = folder / "password"
    password.touch(mode=0o600)
    password.write_text(secrets.token_urlsafe(24) + "\n")
    return Keystore.create(folder / "keys.p12", keys=["k1"], password_file=password)


def start_spark(folder: Path, keys: Kms, master: str = "local[1]", **settings: str) -> SparkSession:
    """Settings have _ for . in their names."""
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    return configure_spark(builder, type="hadoop", warehouse=str(folder), kms=keys).getOrCreate()


def java_table(spark: SparkSession, name: str) -> Any:
    """Iceberg's own Table, loaded again."""
    java: Any = spark._jvm
    return java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def grow(table: Any, snapshots: int) -> None:
    """Make so many snapshots without a file, in a table of Iceberg's Java API."""
    for done in range(0, snapshots, _AT_ONCE):
        transaction = table.newTransaction()
        for _ in range(min(_AT_ONCE, snapshots - done)):
            transaction.newFastAppend().commit()
        transaction.commitTransaction()
        gc.collect()  # Py4J's objects are in cycles, and each keeps its Java object


def took(work: Callable[[], Any]) -> tuple[Any, float]:
    """What was made, and in how many seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def cpu_seconds(java: Any) -> float:
    """What the JVM has used."""
    stat = Path(f"/proc/{java.java.lang.ProcessHandle.current().pid()}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def spread(seconds: Sequence[float], digits: int = 1) -> str:
    """Their median and range."""
    found = (statistics.median(seconds), min(seconds), max(seconds))
    median, least, most = (f"{one:.{digits}f}" for one in found)
    return f"{median} ({least} to {most})"
