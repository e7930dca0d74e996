"""prune_encryption_keys: SQL and Python, beside stock Iceberg."""

import pytest
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    ConfigurationError,
    NotSupportedError,
    encryption_keys,
    prune_encryption_keys,
)

ALL = "older_than => TIMESTAMP '2999-01-01 00:00:00'"


def test_keys_that_stock_iceberg_leaves_go(hive: Lake) -> None:
    table = hive.create()
    hive.insert(table, [1])
    for i in (2, 3):
        hive.insert(hive.table(catalog="stock_hive"), [i])
    hive.sql(f"CALL stock_hive.system.expire_snapshots(table => '{hive.namespace}.t', {ALL})")
    hive.sql(f"REFRESH TABLE {table}")
    assert len(encryption_keys(hive.spark, table).rows) == 5  # with the master key
    dry = prune_encryption_keys(hive.spark, table, dry_run=True)
    assert (dry.committed, dry.removed, dry.kept) == (False, 2, 2)
    [row] = hive.call("prune_encryption_keys", arguments="dry_run => true")
    assert row.asDict() == dry.to_dict()
    [row] = hive.call("prune_encryption_keys")
    assert row.committed and row.bytes_after < row.bytes_before
    assert row.message.startswith("2 of 4 keys removed: the metadata has ")
    assert [key.kind for key in encryption_keys(hive.spark, table).rows] == [
        "master",
        "kek",
        "manifest list",
    ]
    assert hive.ids(table) == hive.ids(hive.table(catalog="stock_hive")) == [1, 2, 3]
    again = prune_encryption_keys(hive.spark, table)
    assert str(again) == f"· {table}: nothing to remove: 2 keys are needed"


def test_what_has_no_keys_to_prune(hadoop: Lake) -> None:
    plain = hadoop.create("plain", key=None)
    with pytest.raises(NotSupportedError, match="is not encrypted"):
        prune_encryption_keys(hadoop.spark, plain)
    with pytest.raises(ConfigurationError, match="does not exist"):
        prune_encryption_keys(hadoop.spark, hadoop.table("none"))
