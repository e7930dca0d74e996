"""Writes golden tables with a build of this project: `python write_tables.py BUILD JAR...`.

BUILD names the build, the short id of its commit; JAR... are its jar, Iceberg's Spark runtime and SQLite's driver. The
tables are written through `viewfs://golden-BUILD`, so that the absolute paths in their metadata name no folder of this
machine: a reader mounts the unpacked files there. README.md says what is in the zip.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

HERE = Path(__file__).parent
TABLES = {
    "hadoop": {
        "encryption.data-key-length": "16",
        "write.format.default": "parquet",
        "write.delete.mode": "merge-on-read",
        "write.metadata.compression-codec": "gzip",
    },
    "jdbc": {
        "encryption.data-key-length": "32",
        "write.format.default": "avro",
        "write.delete.mode": "merge-on-read",
    },
}
"""The properties of the one table, db.t, of each catalog."""

LIFE = """
    INSERT INTO {table} VALUES (1, 'one', 'p'), (2, 'two', 'p'), (3, 'three', 'q'), (4, 'four', 'q')
    ALTER TABLE {table} CREATE TAG first
    DELETE FROM {table} WHERE id = 2
    ALTER TABLE {table} ADD COLUMN more STRUCT<a: INT, b: STRING>
    ALTER TABLE {table} CREATE BRANCH work
    INSERT INTO {table}.branch_work VALUES (6, 'six', 'r', struct(6, 'b'))
    MERGE INTO {table} t USING (SELECT 3 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'III'
    CALL {catalog}.system.compute_table_stats(table => 'db.t')
    CALL {catalog}.system.compute_partition_stats(table => 'db.t')
"""


VALUES = """
    CALL {catalog}.system.create_value_key(name => 'golden', key_id => 'k1')
    CREATE TABLE {catalog}.db.v (id BIGINT, r STRING, d STRING) USING iceberg
    CREATE OR REPLACE TEMPORARY VIEW plain AS SELECT * FROM VALUES (1, 'one'), (2, NULL), (3, 'three') AS t (id, v)
    INSERT INTO {catalog}.db.v SELECT id, {f}.encrypt_value(v, 'golden'), NULL FROM plain
    UPDATE {catalog}.db.v SET d = {f}.encrypt_value_deterministic({f}.decrypt_value(r, 'golden'), 'golden', 'v.d')
"""
"""A plaintext table with encrypted values, db.v, which the first golden tables were without."""


def values(catalog: str) -> str:
    """What decrypts it."""
    f = f"{catalog}.system"
    return (
        f"(SELECT id, {f}.decrypt_value(r, 'golden') AS r,"
        f" {f}.decrypt_value(d, 'golden', 'v.d') AS d FROM {catalog}.db.v)"
    )


def catalog_conf(kind: str, build: str, folder: Path) -> dict[str, str]:
    """A catalog on the golden tables of a build, of its name: a JDBC catalog keeps that in every row.

    Args:
        kind: hadoop or jdbc.
        build: as in the name of the zip.
        folder: where its files are, or become.
    """
    name = f"spark.sql.catalog.{catalog_name(kind, build)}"
    options = {
        "type": kind,
        "warehouse": f"viewfs://golden-{build}/tables/{kind}",
        f"hadoop.fs.viewfs.mounttable.golden-{build}.link./tables": (folder / "tables").as_uri(),
        "encryption.kms-type": "keystore",
        "encryption.kms.keystore.path": str(folder / "keys.p12"),
        "encryption.kms.keystore.password-file": str(folder / "keys.password"),
        "encryption.statistics": "encrypt",
        "cache-enabled": "false",
    }
    if kind == "jdbc":
        options |= {"uri": f"jdbc:sqlite:{folder}/jdbc.db", "jdbc.schema-version": "V1"}
    return {
        name: "io.icebergcrypto.spark.EncryptedSparkCatalog",
        **{f"{name}.{key}": value for key, value in options.items()},
    }


def catalog_name(kind: str, build: str) -> str:
    return f"golden_{build}_{kind}"


def main() -> None:
    build, *jars = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "golden"
        (folder / "tables").mkdir(parents=True)
        copy_keys(folder)
        spark = session(build, folder, jars)
        answers = {
            kind: write(spark, catalog_name(kind, build), properties)
            for kind, properties in TABLES.items()
        }
        spark.stop()
        (folder / "answers.json").write_text(json.dumps(answers, indent=1))
        for path in [*folder.rglob("*.crc"), folder / "keys.p12", folder / "keys.password"]:
            path.unlink()
        shutil.make_archive(str(HERE / f"tables-{build}"), "zip", folder)


def copy_keys(folder: Path) -> None:
    """The keystore must be its owner's alone, which git does not keep."""
    for name in ("keys.p12", "keys.password"):
        shutil.copyfile(HERE / name, folder / name)
        (folder / name).chmod(0o600)


def session(build: str, folder: Path, jars: list[str]) -> SparkSession:
    conf = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": os.pathsep.join(jars),
    }
    for kind in TABLES:
        conf |= catalog_conf(kind, build, folder)
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def write(spark: SparkSession, catalog: str, properties: dict[str, str]) -> dict[str, Any]:
    """Makes a table; returns what each of its states answers."""
    table = f"{catalog}.db.t"
    every = {"encryption.key-id": "k1", **properties}
    told = ", ".join(f"'{key}'='{value}'" for key, value in every.items())
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.db")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, note STRING, part STRING) USING iceberg"
        f" PARTITIONED BY (part) TBLPROPERTIES ({told})"
    )
    for statement in LIFE.strip().splitlines():
        spark.sql(statement.strip().format(table=table, catalog=catalog)).collect()
    for statement in VALUES.strip().splitlines():
        spark.sql(statement.strip().format(catalog=catalog, f=f"{catalog}.system")).collect()
    snapshots = f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at"
    return {
        "rows": rows(spark, table),
        "first": rows(spark, f"{table} VERSION AS OF 'first'"),
        "work": rows(spark, f"{table} VERSION AS OF 'work'"),
        "values": rows(spark, values(catalog)),
        "snapshots": {
            str(row[0]): rows(spark, f"{table} VERSION AS OF {row[0]}")
            for row in spark.sql(snapshots).collect()
        },
    }


def rows(spark: SparkSession, relation: str) -> list[Any]:
    """All rows, as JSON has them."""
    found = spark.sql(f"SELECT * FROM {relation} ORDER BY id").collect()
    return [json.loads(json.dumps(row.asDict(recursive=True))) for row in found]


if __name__ == "__main__":
    main()
