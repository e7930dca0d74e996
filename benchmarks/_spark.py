"""What the benchmarks share: a keystore, and Spark with a Hadoop catalog, `lake`, of which it has the keys."""

import gc
import secrets
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


def grow(table: Any, snapshots: int) -> None:
    """Make so many snapshots without a file, in a table of Iceberg's Java API."""
    for done in range(0, snapshots, _AT_ONCE):
        transaction = table.newTransaction()
        for _ in range(min(_AT_ONCE, snapshots - done)):
            transaction.newFastAppend().commit()
        transaction.commitTransaction()
        gc.collect()  # Py4J's objects are in cycles, and each keeps its Java object
