"""What tests/kms/test_every_kms.py runs on a local-cluster: a driver and two executors, each a JVM of its own."""

import base64
from collections.abc import Callable
from typing import Any

from harness.steps import given, seen, tell
from pyspark.sql import SparkSession

import pyspark_iceberg_crypto
from pyspark_iceberg_crypto import (
    Kms,
    configure_spark,
    kms_metrics,
    rotate_master_key,
    verify_table,
)


def main() -> None:
    settings, builder = given()
    spark = builder.getOrCreate()
    executors = spark.sparkContext.range(64, numSlices=8).map(lambda _: executor()).collect()
    lives = {name: Life(spark, name, kms).live() for name, kms in settings["kms"].items()}
    spark.stop()
    tell({"executors": len(set(executors)), "kms": lives})


def executor() -> int:
    """The process id of the JVM that this Python worker belongs to: its parent's parent."""
    import os
    from pathlib import Path

    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
    return int(daemon.rpartition(")")[2].split()[1])


class Life:
    """A table's life under one KMS, step by step. Each step's outcome is kept: what it saw, or its error."""

    def __init__(self, spark: SparkSession, name: str, given: dict[str, Any]) -> None:
        self.spark = spark
        kms: type[Kms] = getattr(pyspark_iceberg_crypto, given["class"])
        self.kms = kms(**given["fields"])
        self.admin = kms(**{**given["fields"], **given["admin"]})
        self.options: dict[str, str] = given["options"]
        self.key = given["key"]
        self.key_id = self.key
        self.catalog = name
        self.table = f"{name}.db.t"
        self.driver_calls = 0

    def live(self) -> dict[str, Any]:
        steps: list[Callable[[], Any]] = [
            *(self.key_made, self.create, self.insert, self.select_in_a_new_session),
            *(self.on_executors, self.rotate, self.verify, self.shown),
        ]
        self.new_session()
        found = seen(steps, go_on=False)
        self.end_session()
        return {**found, "driver_calls": self.driver_calls}

    def new_session(self) -> None:
        """A session where nobody has used the catalog: a KMS client of its own, nothing in its cache."""
        self.end_session()
        self.spark = self.spark.newSession()
        configure_spark(self.spark, self.catalog, type="jdbc", kms=self.kms, options=self.options)

    def end_session(self) -> None:
        if self.spark.conf.get(f"spark.sql.catalog.{self.catalog}", None) is not None:
            self.driver_calls += sum(self.calls().values())

    def key_made(self) -> Any:
        made = self.admin.create_key(self.key)
        self.key_id = made.key_id
        self.kms.check(self.spark, self.catalog, self.key_id)
        return {
            "made": made.to_dict(),
            "described": self.admin.describe_key(self.key_id).to_dict(),
            "listed": [key.key_id for key in self.admin.list_keys()],
            "policy": self.kms.driver_policy([self.key_id]),
        }

    def create(self) -> Any:
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.catalog}.db")
        self.spark.sql(
            f"CREATE TABLE {self.table} (id BIGINT, part BIGINT) USING iceberg "
            f"PARTITIONED BY (part) TBLPROPERTIES ('encryption.key-id'='{self.key_id}')"
        )
        return self.calls()

    def insert(self) -> Any:
        for i in range(3):
            self.append(10 * i)
        return self.calls()

    def append(self, start: int) -> None:
        rows = f"SELECT id, id % 2 FROM range({start}, {start + 10})"
        self.spark.sql(f"INSERT INTO {self.table} {rows}")

    def ids(self) -> list[int]:
        return sorted(row.id for row in self.spark.table(self.table).collect())

    def select_in_a_new_session(self) -> Any:
        self.new_session()
        return {"ids": self.ids(), "driver": self.calls()}

    def on_executors(self) -> Any:
        """Metadata tables and expire_snapshots, which open manifest lists on executors."""
        entries = self.spark.sql(f"SELECT * FROM {self.table}.all_entries").count()
        manifests = self.spark.sql(f"SELECT * FROM {self.table}.all_manifests").count()
        expired = self.spark.sql(
            f"CALL {self.catalog}.system.expire_snapshots(table => 'db.t', retain_last => 1, "
            "older_than => TIMESTAMP '2999-01-01 00:00:00')"
        ).first()
        return {
            "entries": entries,
            "manifests": manifests,
            "deleted_lists": expired["deleted_manifest_lists_count"] if expired else None,
            "driver": self.calls(),
        }

    def rotate(self) -> Any:
        rotated = self.admin.rotate_key(self.key_id)
        self.new_session()
        before = self.ids()
        self.append(30)
        wrapped = rotate_master_key(self.spark, self.table)
        self.new_session()
        return {
            "rotated": rotated.to_dict(),
            "before": before,
            "wrapped": wrapped.to_dict(),
            "after": self.ids(),
        }

    def verify(self) -> Any:
        with verify_table(self.spark, self.table) as report:
            files = [row.asDict() for row in report.files.select("path", "magic").collect()]
            return {
                "ok": report.ok,
                "files": files,
                "authenticated": report.metadata_authenticated,
                "authentication": report.metadata_authentication,
            }

    def shown(self) -> Any:
        """All that names the table or travels with it, to look for secrets in."""
        jvm: Any = self.spark.sparkContext._jvm
        java = self.spark._jsparkSession
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(java)
        loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java, self.table)
        sent = jvm.org.apache.iceberg.spark.source.SerializableTableWithSize.copyOf(loaded)
        serialized = bytes(jvm.org.apache.iceberg.util.SerializationUtil.serializeToBytes(sent))
        named = [loaded, sent, loaded.io(), loaded.encryption(), loaded.operations()]
        texts = [part.toString() for part in named]
        for statement in (
            f"EXPLAIN EXTENDED SELECT * FROM {self.table} WHERE id > 3",
            f"SHOW CREATE TABLE {self.table}",
            f"DESCRIBE TABLE EXTENDED {self.table}",
        ):
            texts += [str(row) for row in self.spark.sql(statement).collect()]
        texts += [repr(self.kms), str(kms_metrics(self.spark, self.catalog))]
        return {"texts": texts, "serialized": base64.b64encode(serialized).decode()}

    def calls(self) -> dict[str, int]:
        """What the driver asked of the KMS in this session."""
        metrics = kms_metrics(self.spark, self.catalog)
        return {"wrap": metrics.wrap_calls, "unwrap": metrics.unwrap_calls}


if __name__ == "__main__":
    main()
