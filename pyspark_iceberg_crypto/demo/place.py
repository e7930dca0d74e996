"""The demo's folder, and Spark sessions whose every file stays in it."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import Keystore, configure_spark
from pyspark_iceberg_crypto.jvm import _quiet
from pyspark_iceberg_crypto.jvm.artifacts import build_for

KEY = "flights-2013"
CATALOG = "lake"
ENCRYPTED = f"{CATALOG}.demo.flights"
PLAIN = f"{CATALOG}.demo.flights_plain"

# For three short-lived JVMs the optimizing compiler and the parallel collector cost more than they save.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Place:
    """A folder with everything that the demo makes: tables, metastore, keystores, Spark's own log."""

    folder: Path

    @property
    def warehouse(self) -> Path:
        """Where the tables' files are."""
        return self.folder / "warehouse"

    @property
    def log(self) -> Path:
        """Where Spark's output goes."""
        return self.folder / "spark.log"

    @property
    def catalog_type(self) -> str:
        """The kind of catalog: Hive, whose embedded metastore has no locks, needs Spark 4 for that."""
        return "hadoop" if build_for().spark == "3.5" else "hive"

    @property
    def write_mode(self) -> str:
        """How rows are updated and deleted: Iceberg 1.11, of Spark 4.0, loses the keys of deletion vectors."""
        return "copy-on-write" if build_for().iceberg.startswith("1.11.") else "merge-on-read"

    def keystore(self, name: str) -> Keystore:
        """Name a keystore of the demo; ``make_keystore`` makes it."""
        return Keystore(self.folder / f"{name}.p12", password_file=self.folder / f"{name}.password")

    def make_keystore(self, name: str) -> Keystore:
        """Make a keystore with a new password and a new key called KEY."""
        password = self.folder / f"{name}.password"
        with os.fdopen(os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(24) + "\n")
        return Keystore.create(self.folder / f"{name}.p12", keys=[KEY], password_file=password)

    def session(self, keystore: str) -> SparkSession:
        """Start Spark with one of the keystores, on a catalog in the folder: Hive's is embedded (Derby).

        Derby lets in one process at a time: end one session's JVM before the next one starts.
        """
        java_options = f"-Dderby.system.home={self.folder} {QUICK_START}"
        builder = _quiet.builder("iceberg-crypto demo", java_options=java_options)
        builder.master("local[2]")
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.local.dir": str(self.folder / "spark-local"),
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": (self.folder / "spark-warehouse").as_uri(),
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName="
            f"{self.folder / 'metastore'};create=true",
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.hive.metastore.schema.verification": "false",
            "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        }
        for key, value in settings.items():
            builder.config(key, value)
        configure_spark(
            builder,
            CATALOG,
            type=self.catalog_type,
            warehouse=self.warehouse.as_uri(),
            kms=self.keystore(keystore),
        )
        with _quiet.output_to(self.log):
            return builder.getOrCreate()
