"""The catalogs of the tests: ours and stock Iceberg's over the same warehouses, metastore, database and REST server."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from servers.process import Server
from servers.rest import start_rest_server

from harness.classes import (
    IMPLEMENTATIONS,
    ORC_CHECKS,
    PARQUET_WRITES,
    SESSION_CATALOG,
    SPARK_CATALOG,
)
from harness.jars import BUILT, RUNTIME, build_jars, compile_doubles, our_jar
from harness.keystore import TestKeystore, make_keystore
from harness.programs import QUICK_JVM
from harness.used import used_jar

KINDS = ("hive", "rest", "jdbc", "hadoop")

STOCK = "org.apache.iceberg.spark.SparkCatalog"
STOCK_SESSION = "org.apache.iceberg.spark.SparkSessionCatalog"
# ICEBERG_CRYPTO_TEST_STOCK=1 runs the suite on stock Iceberg: what fails there is what this project is for.
ON_STOCK = os.environ.get("ICEBERG_CRYPTO_TEST_STOCK") == "1"
OURS = STOCK if ON_STOCK else SPARK_CATALOG
OURS_SESSION = STOCK_SESSION if ON_STOCK else SESSION_CATALOG

# Hive 2.3.9, of Spark 3.5, lets a commit replace one that it has not seen, unless commits take locks.
HIVE_NEEDS_LOCKS = BUILT.spark == "3.5"

# Of this project's extensions, stock Iceberg has none.
EXTENSIONS = BUILT.extensions[:1] if ON_STOCK else (*BUILT.extensions, PARQUET_WRITES, ORC_CHECKS)

# Uncompressed, so that the search for the marker in the bytes means something.
UNCOMPRESSED = {
    f"table-default.write.{kind}.compression-codec": "uncompressed"
    for kind in ("parquet", "avro", "manifest", "delete.parquet", "delete.avro")
}


@dataclass
class World:
    """Folders, keystore and server that all sessions of a test run share."""

    root: Path
    keystore: TestKeystore
    rest: Server
    jar: Path
    classes: Path
    doubles: Path
    file_system: str

    def warehouse(self, kind: str) -> Path:
        return self.root / "warehouse" / kind

    def keystore_options(self) -> dict[str, str]:
        return {
            "encryption.kms.keystore.path": str(self.keystore.path),
            "encryption.kms.keystore.password-file": str(self.keystore.password_file),
        }

    def backend(self, kind: str) -> dict[str, str]:
        """A catalog's stock options."""
        options = {"type": kind, "warehouse": str(self.warehouse(kind)), **UNCOMPRESSED}
        if kind == "jdbc":
            options["uri"] = f"jdbc:sqlite:{self.root}/jdbc-catalog.db?busy_timeout=30000"
            options["jdbc.schema-version"] = "V1"
        if kind == "rest":
            options["uri"] = self.rest.uri
        return options

    def ours(self, kind: str) -> dict[str, str]:
        if ON_STOCK:
            return self.stock(kind)
        return {**self.backend(kind), "encryption.kms-type": "keystore", **self.keystore_options()}

    def stock(self, kind: str) -> dict[str, str]:
        options = {**self.backend(kind), "cache-enabled": "false"}
        if kind == "hive":  # the one catalog where stock Iceberg encrypts
            options |= {
                "encryption.kms-impl": IMPLEMENTATIONS["keystore"],
                **self.keystore_options(),
            }
        return options

    def session_conf(self, metastore: Path | None = None) -> dict[str, str]:
        """Spark's configuration; a second process names its own copy of the embedded metastore."""
        conf = {
            "spark.master": "local[2]",
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            # Each statement is run once: compiling it takes longer. Examples and demo run with compiled ones.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(self.root / "spark-warehouse"),
            "spark.sql.extensions": ",".join(EXTENSIONS),
            "spark.jars": ",".join(
                map(str, [self.jar, self.doubles, *build_jars("test-jars", RUNTIME)])
            ),
            # Tests have sessions of their own, with catalogs of their own.
            "spark.iceberg-crypto.settings-from": "session",
            "spark.hadoop.fs.file.impl": self.file_system,
            "spark.driver.extraJavaOptions": f"{QUICK_JVM} -Dderby.system.home={self.root}",
            **embedded_metastore(metastore or self.root / "metastore"),
        }
        conf |= catalog_conf("spark_catalog", OURS_SESSION, self.ours("hive"))
        for kind in KINDS:
            conf |= catalog_conf(f"enc_{kind}", OURS, self.ours(kind))
            conf |= catalog_conf(f"stock_{kind}", STOCK, self.stock(kind))
        return conf


def embedded_metastore(folder: Path) -> dict[str, str]:
    """Hive's metastore on Derby inside the driver."""
    return {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder};create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.hadoop.datanucleus.connectionPoolingType": "HikariCP",
        **({} if HIVE_NEEDS_LOCKS else {"spark.hadoop.iceberg.engine.hive.lock-enabled": "false"}),
    }


def create_lock_tables(spark: SparkSession) -> None:
    """Creates the embedded metastore's tables for locks, which it does not create itself."""
    if HIVE_NEEDS_LOCKS:
        hive: Any = spark._jvm.org.apache.hadoop.hive
        hadoop = spark._jsc.hadoopConfiguration()
        conf = hive.conf.HiveConf(hadoop, hadoop.getClass())
        hive.metastore.txn.TxnDbUtil.prepDb(conf)


def catalog_conf(name: str, implementation: str, options: dict[str, str]) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    return {prefix: implementation, **{f"{prefix}.{key}": value for key, value in options.items()}}


def make_world(root: Path) -> World:
    warehouse = root / "warehouse"
    warehouse.mkdir()
    jar = Path(
        shutil.copy(our_jar(), root)
    )  # a build during the tests must not change the jar under a running JVM
    keystore = make_keystore(root)
    rest = start_rest_server(root / "rest-catalog.db", warehouse / "rest", root / "rest-server.log")
    classes, doubles = root / "classes", root / "doubles.jar"
    used_jar("JDBC: SQLite's driver", build_jars("test-jars"), "sqlite-jdbc")
    file_system = compile_doubles(classes, doubles, jar)
    # On Spark's class path from the start, as DriverManager looks for drivers once; and at its end, as an archive of
    # classes is for what a class path begins with.
    at_start = (*build_jars("test-jars", "sqlite-jdbc-*.jar"), classes)
    os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, at_start))
    return World(root, keystore, rest, jar, classes, doubles, file_system)


def back_up_metastore(spark: SparkSession, world: World, folder: Path) -> Path:
    """A copy of the embedded metastore: Derby lets one process at a time open a database."""
    jvm = spark._jvm
    assert jvm is not None
    connection = jvm.java.sql.DriverManager.getConnection(f"jdbc:derby:{world.root / 'metastore'}")
    try:
        call = connection.prepareCall("CALL SYSCS_UTIL.SYSCS_BACKUP_DATABASE(?)")
        call.setString(1, str(folder))
        call.execute()
    finally:
        connection.close()
    return folder / "metastore"
