"""encryption_keys on real tables: as SQL, and from Python."""

from datetime import datetime, timedelta, timezone

import pytest
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    NotSupportedError,
    TableNotFoundError,
    encryption_keys,
)


def test_sql_and_python_tell_the_same(lake: Lake) -> None:
    lake = lake.with_options({"encryption.statistics": "encrypt"})
    table = lake.insert(lake.create(encryption_data__key__length="32"), [1])
    lake.insert(table, [2])
    lake.call("compute_table_stats")
    report = encryption_keys(lake.spark, table)
    rows = lake.call("encryption_keys")
    assert [row.asDict() for row in rows] == [
        {**vars(key), "created_at": row.created_at}
        for key, row in zip(report.keys, rows, strict=True)
    ]
    kinds = [row.kind for row in rows]
    assert kinds == ["master", "kek", "manifest list", "manifest list", "statistics"]
    made = rows[1].created_at.replace(tzinfo=timezone.utc)
    assert timedelta() <= datetime.now(timezone.utc) - made < timedelta(hours=1)
    assert datetime.fromisoformat(str(report.keys[1].created_at)[:19]) == rows[
        1
    ].created_at.replace(microsecond=0)
    assert [row.key_length for row in rows[1:]] == [32, 32, 32, 32]
    assert [row.key_version for row in rows] == [None, 1, None, None, None]
    assert rows[4].used_for.endswith(".stats")
    assert report.ok and report.kms_calls == 1
    assert f"every key of {table} can be used" in str(report)


@pytest.mark.nightly
def test_the_session_catalog_has_it(hive: Lake) -> None:
    hive.insert(hive.create(), [1])
    rows = hive.sql(f"CALL spark_catalog.system.encryption_keys('{hive.namespace}.t')")
    assert {row.kind for row in rows} == {"master", "kek", "manifest list"}


def test_what_has_no_keys(hadoop: Lake) -> None:
    table = hadoop.create(key=None)
    with pytest.raises(NotSupportedError, match="is not encrypted"):
        encryption_keys(hadoop.spark, table)
    with pytest.raises(TableNotFoundError, match="does not exist"):
        encryption_keys(hadoop.spark, hadoop.table("none"))
    with pytest.raises(NotSupportedError, match="is not an encrypting one"):
        encryption_keys(hadoop.spark, hadoop.table("t", "stock_hadoop"))
    for bad, says in (
        ("NULL", "table of encryption_keys is NULL"),
        ("'a..b'", "Not the name of a table"),
        (f"'{hadoop.namespace}.none'", "does not exist"),
    ):
        with pytest.raises(Exception, match=says):
            hadoop.sql(f"CALL {hadoop.catalog}.system.encryption_keys(table => {bad})")
