"""repair_table: SQL and Python, on tables that stock Iceberg has left unusable."""

import pytest
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    NotEncryptedError,
    NotSupportedError,
    TableNotFoundError,
    TamperedError,
    repair_table,
    typed_errors,
    verify_table,
)


@pytest.mark.catalogs("rest")
def test_a_key_id_and_a_data_key_length_are_put_right(lake: Lake) -> None:
    table, stock = lake.create(), lake.table("t", f"stock_{lake.kind}")
    lake.insert(table, [1])
    with lake.seen_by(f"stock_{lake.kind}"):
        lake.sql(f"ALTER TABLE {stock} SET TBLPROPERTIES ('encryption.data-key-length'='17')")
        if lake.kind == "rest":
            lake.sql(f"ALTER TABLE {stock} UNSET TBLPROPERTIES ('encryption.key-id')")
    with pytest.raises(Exception, match=r"repair_table|authenticate_metadata"):
        lake.sql(f"REFRESH TABLE {table}")
        lake.sql(f"SELECT * FROM {table}")
    rows = lake.call("repair_table")
    found = {row.kind: row.repairable for row in rows}
    if lake.kind in ("jdbc", "hadoop"):  # nobody knows what else was changed
        assert found == {"tampered": False, "data key length": False}
        assert [row.kind for row in lake.call("repair_table", arguments="confirm => true")] == [
            row.kind for row in rows
        ]
        return
    wrong = ["data key length"] if lake.kind == "hive" else ["key id removed", "data key length"]
    assert found == dict.fromkeys(wrong, True)
    assert not any(row.repaired for row in rows)
    rows = lake.call("repair_table", arguments="confirm => true")
    assert [(row.kind, row.repaired) for row in rows] == [(one, True) for one in wrong]
    lake.insert(table, [2])
    assert lake.ids(table) == [1, 2]
    assert lake.call("repair_table") == []
    with verify_table(lake.spark, table, all_snapshots=True) as report:
        assert report.ok, str(report)


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
def test_plaintext_is_left_and_the_hint_works(lake: Lake) -> None:
    if lake.kind == "hive":
        pytest.skip("stock Iceberg encrypts there")
    table, stock = lake.create(), lake.table("t", f"stock_{lake.kind}")
    lake.insert(table, [1])
    with lake.seen_by(f"stock_{lake.kind}"):
        lake.sql(f"CREATE OR REPLACE TABLE {stock} USING iceberg AS SELECT 2L AS id, 'x' AS note")
    if lake.kind != "rest":
        findings = {one.kind for one in repair_table(lake.spark, table).findings}
        assert {"tampered", "plaintext"} <= findings
        return
    report = repair_table(lake.spark, table, confirm=True)
    assert [(one.kind, one.repaired) for one in report.findings] == [("plaintext", False)]
    hint = report.findings[0].hint
    back = hint.index("CALL")
    lake.sql(hint[back : hint.index(")", back) + 1])
    allowing = lake.with_options({"encryption.plaintext-files": "allow"})
    expire = hint.index("CALL", back + 1)
    lake.sql(hint[expire : hint.index("')", expire) + 2].replace("<catalog>", allowing.catalog))
    assert repair_table(lake.spark, table).ok
    assert lake.ids(table) == [1]
    lake.assert_encrypted()


def test_what_is_no_encrypted_table(hadoop: Lake) -> None:
    table, plain = hadoop.create(), hadoop.create("plain", key=None)
    report = repair_table(hadoop.spark, table)
    assert report.ok and not report.unchecked and report.findings == []
    assert str(report).startswith(f"✓ {table}: nothing is wrong with it")
    with pytest.raises(NotEncryptedError, match=plain):
        repair_table(hadoop.spark, plain)
    with pytest.raises(TableNotFoundError, match="does not exist"):
        repair_table(hadoop.spark, hadoop.table("none"))
    with pytest.raises(NotSupportedError, match="is not an encrypting one"):
        repair_table(hadoop.spark, hadoop.table("t", "stock_hadoop"))
    stock = hadoop.table("t", "stock_hadoop")
    hadoop.sql(f"ALTER TABLE {stock} SET TBLPROPERTIES ('a'='b')")
    with pytest.raises(TamperedError), typed_errors():
        hadoop.sql(f"REFRESH TABLE {table}")
    report = repair_table(hadoop.spark, table, confirm=True)
    assert [one.kind for one in report.left] == ["tampered"]
    assert "authenticate_metadata" in report.left[0].hint
