"""rotate_master_key and rotate_kek: SQL, Python, and stock Iceberg beside them."""

from pathlib import Path
from typing import Any

import pytest
from harness.backends import start
from harness.lake import Lake

from pyspark_iceberg_crypto import (
    ConfigurationError,
    IcebergCryptoError,
    Vault,
    encryption_keys,
    key_versions_in_use,
    rotate_catalog,
    rotate_kek,
    rotate_master_key,
    verify_table,
)


def test_all_tables_of_a_namespace(hadoop: Lake) -> None:
    for name in ("a", "b", "c"):
        hadoop.insert(hadoop.create(name), [1])
    plain = hadoop.create("plain", key=None)
    target = f"{hadoop.catalog}.{hadoop.namespace}"
    report = rotate_catalog(hadoop.spark, target, "k2")
    assert report.ok and report.skipped == [plain]
    assert sorted(one.table for one in report.done) == [hadoop.table(name) for name in "abc"]
    assert all(hadoop.ids(hadoop.table(name)) == [1] for name in "abc")
    report = rotate_catalog(hadoop.spark, target, "k2")
    assert report.ok and report.done == [] and len(report.current) == 3
    assert len(rotate_catalog(hadoop.spark, target, again=True, dry_run=True).done) == 3
    versions = key_versions_in_use(hadoop.spark, target)
    assert [(key.key_id, key.wraps_now, key.in_use) for key in versions.keys] == [("k2", 1, {1: 3})]
    assert versions.ok and versions.skipped == [plain] and versions.not_needed("k2") == []
    report = rotate_catalog(hadoop.spark, f"{target}.*", kek=True, rewrap=True, threads=2)
    assert [one.rewrapped for one in report.done] == [1, 1, 1]
    report = rotate_catalog(hadoop.spark, target, kek=True, rewrap=True, older_than_days=1)
    assert report.done == [] and len(report.current) == 3
    report = rotate_catalog(hadoop.spark, target, "none")
    assert len(report.left) == 3 and all("none" in one["problem"] for one in report.left)
    two: dict[str, Any] = {"kek": True, "new_key_id": "k2"}
    for wrong in (two, {"rewrap": True}, {"older_than_days": 3.0}, {"threads": 0}):
        with pytest.raises(ConfigurationError, match="nothing was done"):
            rotate_catalog(hadoop.spark, target, **wrong)
    with pytest.raises(ConfigurationError, match="name of rotate_catalog is empty"):
        rotate_catalog(hadoop.spark, " ")


@pytest.mark.catalogs("jdbc")
def test_what_gives_new_tables_the_former_key_is_left(lake: Lake) -> None:
    """The namespace has it; NamespaceKeysTest has the catalog, and what goes before what."""
    if lake.kind == "hadoop":
        pytest.skip("its namespaces have no properties")
    target = f"{lake.catalog}.{lake.namespace}"
    lake.sql(f"ALTER NAMESPACE {target} SET DBPROPERTIES ('encryption.key-id'='k1')")
    lake.insert(lake.create(), [1])
    report = rotate_catalog(lake.spark, target, "k2")
    assert [one.table for one in report.done] == [lake.table()] and not report.ok
    [left] = report.left
    assert left["table"] == target
    assert left["problem"] == "its encryption.key-id gives new tables master key 'k1'"
    assert rotate_catalog(lake.spark, target, kek=True).ok
    lake.sql(left["hint"].rstrip("."))
    assert rotate_catalog(lake.spark, target, "k2").ok


def moves_to(moved: Lake, lake: Lake, key: str) -> None:
    """A table of a catalog moves to the KMS of another one, which the former KMS cannot read then."""
    table = lake.insert(lake.create(), [1])
    lake.insert(table, [2])
    before = lake.history(table)
    with lake.seen_by(moved.catalog):
        arguments = f"new_key_id => '{key}', from_catalog => '{lake.catalog}'"
        moved.refused(
            f"CALL {moved.catalog}.system.rotate_master_key"
            f"(table => '{lake.namespace}.t', from_catalog => 'stock_hive')",
            "from_catalog",
        )
        [row] = moved.call("rotate_master_key", arguments=f"{arguments}, dry_run => true")
        assert not row.committed
        done = rotate_master_key(lake.spark, moved.table(), key, from_catalog=lake.catalog)
        assert (done.old_key_id, done.new_key_id, done.committed) == ("k1", key, True)
        moved.call("rotate_master_key", arguments=arguments)  # a second time is no harm
        assert moved.history(moved.table()) == before
        moved.insert(moved.table(), [3])
        with verify_table(moved.spark, moved.table(), deep=True, all_snapshots=True) as report:
            assert report.ok, str(report)
        assert encryption_keys(moved.spark, moved.table()).ok
    with pytest.raises(IcebergCryptoError):
        rotate_master_key(lake.spark, table, dry_run=True)  # of the former KMS


@pytest.mark.nightly
def test_from_a_keystore_to_vault(hadoop: Lake, tmp_path: Path) -> None:
    vault = start("vault", tmp_path / "vault")
    try:
        Vault(**{**vault.fields, **vault.admin}).create_key(vault.key)
        options = Vault(**vault.fields).properties()
        former = hadoop.world.keystore_options()
        moves_to(hadoop.with_options(options, without=former), hadoop, vault.key)
    finally:
        vault.stop()


@pytest.mark.nightly
@pytest.mark.since("how many keys stock Iceberg leaves differs by its version", iceberg="1.12")
def test_stock_iceberg_takes_the_new_keys(hive: Lake) -> None:
    table, stock = hive.create(), hive.table("t", "stock_hive")
    hive.insert(table, [1])
    hive.insert(stock, [2])
    done = rotate_kek(hive.spark, table)
    rotate_master_key(hive.spark, table)
    rotate_master_key(hive.spark, table, "k2")
    assert hive.ids(stock) == [1, 2]
    hive.insert(stock, [3])
    hive.sql(f"REFRESH TABLE {table}")
    assert hive.ids(table) == [1, 2, 3]
    keys = encryption_keys(hive.spark, table).keys
    assert [(key.kind, key.key_id) for key in keys][1] == ("kek", done.new_kek_id)
    assert [key.kind for key in keys] == ["master", "kek", *["manifest list"] * 3]
    assert keys[0].key_id == "k2"
    assert all(hive.ids(stock, f"VERSION AS OF {i}") for i in hive.history(table))


@pytest.mark.nightly
def test_replaced_keys_leave_a_hive_table(hive: Lake) -> None:
    """Iceberg 1.11 added them again with each commit."""
    table = hive.create()
    hive.insert(table, [1])
    done = rotate_kek(hive.spark, table)
    hive.insert(table, [2])
    keys = encryption_keys(hive.spark, table).keys
    assert [key.key_id for key in keys if key.kind == "kek"] == [done.new_kek_id]
    assert done.removed_keks == 1 and hive.ids(table) == [1, 2]


@pytest.mark.nightly
def test_a_view_has_no_keys(hive: Lake) -> None:
    view = hive.table("v", "spark_catalog")
    hive.sql(f"CREATE VIEW {view} AS SELECT 1 AS id")
    for rotate in (rotate_kek, rotate_master_key):
        with pytest.raises(ConfigurationError, match=f"{hive.namespace}.v"):
            rotate(hive.spark, view)
