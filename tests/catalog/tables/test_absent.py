"""What each function says of a table, a view or a namespace that there is not: one type of error, with a hint."""

from collections.abc import Callable
from typing import Any

import pytest
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    TableNotFoundError,
    decrypt_table,
    encrypt_table,
    encryption_keys,
    inspect_file,
    key_versions_in_use,
    prune_encryption_keys,
    purge_plaintext,
    reencrypt_table,
    repair_table,
    rotate_catalog,
    rotate_kek,
    rotate_master_key,
    typed_errors,
    verify_catalog,
    verify_table,
)

OF_A_TABLE: dict[str, Callable[..., Any]] = {
    "verify_table": verify_table,
    "encrypt_table": lambda spark, table: encrypt_table(spark, table, "k1"),
    "decrypt_table": lambda spark, table: decrypt_table(spark, table, confirm=True),
    "purge_plaintext": purge_plaintext,
    "reencrypt_table": reencrypt_table,
    "repair_table": repair_table,
    "rotate_master_key": rotate_master_key,
    "rotate_kek": rotate_kek,
    "prune_encryption_keys": prune_encryption_keys,
    "encryption_keys": encryption_keys,
    "inspect_file": lambda spark, table: inspect_file(spark, "/no/such/file", table=table),
}
BY_DAY = ("verify_table", "encrypt_table", "rotate_master_key")
OF_A_NAMESPACE: dict[str, Callable[..., Any]] = {
    "verify_catalog": verify_catalog,
    "rotate_catalog": rotate_catalog,
    "key_versions_in_use": key_versions_in_use,
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name not in BY_DAY)) for name in OF_A_TABLE],
)
def test_no_such_table(lake: Lake, name: str) -> None:
    lake.create()
    missing = [lake.table("none"), f"{lake.catalog}.nowhere.t"]
    if lake.catalog == "enc_rest":
        lake.sql(f"CREATE OR REPLACE VIEW {lake.table('v')} AS SELECT 1 AS one")
        missing.append(lake.table("v"))
    for table in missing:
        with pytest.raises(TableNotFoundError) as caught:
            OF_A_TABLE[name](lake.spark, table)
        assert table.rpartition(".")[2] in caught.value.message
        assert caught.value.hint


@pytest.mark.parametrize("name", OF_A_NAMESPACE)
def test_no_such_namespace(lake: Lake, name: str) -> None:
    with pytest.raises(TableNotFoundError, match="nowhere") as caught:
        OF_A_NAMESPACE[name](lake.spark, f"{lake.catalog}.nowhere")
    assert "SHOW NAMESPACES" in caught.value.hint


@pytest.mark.parametrize(
    "call",
    [
        "purge_without_key(table => '{}')",
        "verify_encryption(table => '{}')",
        "authenticate_metadata(table => '{}', metadata_file => 'f')",
    ],
)
def test_in_sql(hadoop: Lake, call: str) -> None:
    hadoop.create()
    with pytest.raises(TableNotFoundError), typed_errors():
        hadoop.sql(f"CALL {hadoop.catalog}.system." + call.format(f"{hadoop.namespace}.none"))
