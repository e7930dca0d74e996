"""Traps for a catalog decorator that a plain walk through SQL does not step on."""

import pytest
from harness.lake import Lake
from harness.world import HIVE_NEEDS_LOCKS, World
from pyspark.sql import SparkSession


@pytest.mark.nightly
def test_rest_refs_mode(spark: SparkSession, world: World) -> None:
    """snapshot-loading-mode=refs: a table is loaded without most of its snapshots."""
    options = {"snapshot-loading-mode": "refs", "cache-enabled": "false"}
    rest = Lake(spark, world, "rest", "enc_rest").with_options(options)
    table = rest.create(write_delete_mode="merge-on-read")
    for i in range(3):
        rest.insert(table, [i])
    first = rest.value(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1")
    rest.run(f"DELETE FROM {table} WHERE id = 1")
    assert rest.ids(table) == [0, 2]
    assert rest.ids(table, f"VERSION AS OF {first}") == [0]
    rest.call("rewrite_data_files", arguments="options => map('rewrite-all', 'true')")
    rest.call(
        "expire_snapshots",
        arguments="older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1",
    )
    assert rest.ids(table) == [0, 2]
    rest.run(f"DROP TABLE {table} PURGE")
    assert rest.files() == []


@pytest.mark.skipif(not HIVE_NEEDS_LOCKS, reason="Spark 4's metastore needs no locks")
def test_hive_without_locks(hive: Lake) -> None:
    """Spark 3.5's embedded metastore would lose commits, as it does with stock Iceberg."""
    off = "TBLPROPERTIES ('engine.hive.lock-enabled'='false')"
    keyed = off.replace("(", "('encryption.key-id'='k1', ")
    new = hive.table("new")
    hive.refused(f"CREATE TABLE {new} (id BIGINT) USING iceberg {keyed}", "lock-enabled", "2.3.9")
    table = hive.insert(hive.create(), [1])
    hive.refused(f"ALTER TABLE {table} SET {off}", table, "engine.hive.lock-enabled", "2.3.9")
    assert hive.ids(table) == [1]
