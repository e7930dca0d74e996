# ruff: noqa: E402
"""What test_clients.py runs with pyspark-client, before Spark 4.0 with pyspark: what Python functions do, as JSON."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SPARK = find_spec("pyspark")
assert SPARK is not None and SPARK.origin is not None
ALONE = not (Path(SPARK.origin).parent / "jars").exists()
if ALONE:
    sys.modules["py4j"] = None  # type: ignore[assignment]  # pyspark-client does not need it

from pyspark.sql import SparkSession

import pyspark_iceberg_crypto as ours


def error_of(work: Callable[[], Any]) -> str:
    try:
        return str(work())
    except ours.IcebergCryptoError as error:
        return type(error).__name__


def main(url: str) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    spark.sql("CREATE TABLE shop.db.later (id INT) USING iceberg")
    spark.sql("INSERT INTO shop.db.later SELECT /*+ REPARTITION(2) */ id FROM range(0, 10, 1, 2)")
    whole = ours.verify_table(spark, "shop.db.whole", deep=True, progress=False)
    every = ours.verify_catalog(spark, "shop.db.hr")
    dry = ours.encrypt_table(spark, "shop.db.later", "k1", dry_run=True)
    refused = error_of(lambda: ours.encrypt_table(spark, "shop.db.later", "nosuch"))
    done = ours.encrypt_table(spark, "shop.db.later", "k1", max_bytes=10**9, progress=True)
    purged = ours.purge_plaintext(spark, "shop.db.later")
    rotated = ours.rotate_master_key(spark, "shop.db.later", new_key_id="k2")
    kek = ours.rotate_kek(spark, "shop.db.later", rewrap=True)
    options = {"min-input-files": "1", "target-file-size-bytes": "1000000"}
    again = ours.reencrypt_table(spark, "shop.db.later", options=options)
    pruned = ours.prune_encryption_keys(spark, "shop.db.later", dry_run=True)
    every_table = ours.rotate_catalog(spark, "shop.db", "k1", dry_run=True, threads=2)
    in_use = ours.key_versions_in_use(spark, "shop.db")
    location = spark.sql("SELECT file_path FROM shop.db.later.files").first()[0]
    folder = ours.verify_folder(spark, location.rpartition("/")[0])
    told = {
        "of pyspark-client": ALONE,
        "verify_table": [whole.ok, whole.snapshots + whole.format_version],
        "verify_catalog": [every.ok, [report.table for report in every.reports]],
        "encrypt_table, dry run": [dry.committed, dry.files, dry.files_left],
        "encrypt_table": done.committed,
        "purge_plaintext": [purged.committed, purged.files],
        "rotate_master_key": rotated.new_key_id,
        "rotate_kek": kek.committed,
        "reencrypt_table": [again.committed, again.left],
        "prune_encryption_keys": "nothing to remove" if not pruned.removed else pruned.message,
        "repair_table": ours.repair_table(spark, "shop.db.later").ok,
        "an unknown key": refused,
        "encryption_keys": ours.encryption_keys(spark, "shop.db.later").keys[0].key_id,
        "rotate_catalog": "shop.db.later" in [one.table for one in every_table.done],
        "key_versions_in_use": "k2" in [key.key_id for key in in_use.keys],
        "kms_metrics": ours.kms_metrics(spark, "shop").kms.partition(" ")[0],
        "verify_folder": [folder.ok, folder.counts != [], error_of(lambda: folder.files)],
        "inspect_file": ours.inspect_file(spark, location).magic,
        "of the driver": error_of(lambda: whole.sign(spark, "shop", "k1")),
        "stock's catalog": error_of(lambda: ours.verify_table(spark, "stock_hadoop.db.t")),
    }
    told |= values(spark)
    spark.sql("DROP TABLE shop.db.later")
    sys.stdout.write(json.dumps(told) + "\n")


def values(spark: SparkSession) -> dict[str, Any]:
    """Columns whose values are encrypted, and their keys."""
    first = ours.create_value_key(spark, "shop", "people", "k1")
    (second,) = ours.rotate_value_key(spark, "shop", "people", new_version=True)
    people = spark.sql("SELECT id, CAST(id AS STRING) AS ssn FROM range(3)")

    def encrypted(key: str, deterministic: bool = False) -> Any:
        return people.withColumn(
            "ssn",
            ours.encrypt_value(
                "ssn", key, catalog="shop", context="c", deterministic=deterministic
            ),
        )

    plain = ours.decrypt_value("ssn", "people", catalog="shop", context="c").alias("ssn")
    nothing = ours.decrypt_value("ssn", "people", catalog="shop", errors=False).alias("ssn")
    both = encrypted("people").union(encrypted("people", deterministic=True))
    dropped = ours.drop_value_key(spark, "shop", "people", first.version, confirm=True)

    def misspelt() -> Any:
        with ours.typed_errors():
            frame = encrypted("poeple")
            return frame.schema if ALONE else frame.collect()  # Spark 3.5 looks a name up with rows

    return {
        "values": sorted(row.ssn for row in both.select(plain).collect()),
        "of another context": [row.ssn for row in both.select(nothing).distinct().collect()],
        "a misspelt key": error_of(misspelt),
        "value keys": dropped == [second] == ours.value_keys(spark, "shop"),
    }


if __name__ == "__main__":
    main(sys.argv[1])
