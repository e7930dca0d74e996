"""The master key that a namespace gives to its new tables, by SQL."""

import pytest
from harness.files import files_below
from harness.lake import Lake

KEY = "encryption.key-id"


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_a_namespace_gives_its_key(lake: Lake) -> None:
    """CREATE, CTAS and CREATE OR REPLACE take the namespace's key; a catalog without a place for it says so."""
    namespace = f"{lake.catalog}.{lake.namespace}"
    alter = f"ALTER NAMESPACE {namespace} SET DBPROPERTIES ('{{}}'='{{}}')"
    subject = f"Namespace {namespace}"
    lake.refused(alter.format("encryption.keyid", "k1"), subject, "Did you mean encryption.key-id?")
    if lake.kind == "hadoop":
        create = f"CREATE NAMESPACE {lake.catalog}.other WITH DBPROPERTIES ('{KEY}'='k1')"
        lake.refused(create, f"Namespace {lake.catalog}.other", f"table-default.{KEY}")
        lake.refused(alter.format(KEY, "k1"), subject, f"table-default.{KEY}")
        return
    lake.refused(alter.format(KEY, "nope"), subject, "'nope'")
    lake.sql(alter.format(KEY, "k2"))
    strict = lake.with_options({"encryption.required": "true"}) if lake.kind != "jdbc" else lake
    strict.run(f"CREATE TABLE {strict.table('plain')} (id INT) USING iceberg")
    strict.run(f"INSERT INTO {strict.table('plain')} VALUES (1)")
    strict.run(f"CREATE TABLE {strict.table('ctas')} USING iceberg AS SELECT 1 AS id")
    for _ in range(2):
        strict.run(
            f"CREATE OR REPLACE TABLE {strict.table('rtas')} USING iceberg AS SELECT 1 AS id"
        )
    strict.create("named", key="k1")
    for table, key in {"plain": "k2", "ctas": "k2", "rtas": "k2", "named": "k1"}.items():
        found = strict.properties(strict.table(table))
        assert (table, found[KEY]) == (table, key)
    arguments = f"source_table => '{lake.table('named')}', table => '{lake.namespace}.copy'"
    lake.refused(
        f"CALL {lake.catalog}.system.snapshot({arguments})",
        "snapshot uses a table's files as they are",
        lake.table("named"),
    )
    source = f"spark_catalog.default.{lake.namespace}"
    lake.sql(f"CREATE TABLE {source} USING parquet AS SELECT 1L AS id")
    lake.refused(
        f"CALL {lake.catalog}.system.snapshot('{source}', '{lake.namespace}.copy')",
        "snapshot keeps a table's files as they are",
        f"{lake.namespace}.copy",
    )
    lake.sql(f"DROP TABLE {source}")
    assert strict.magics("ctas") == strict.magics("rtas") == {b"PARE", b"AGS1"}


def test_the_session_catalog_does_not_drop_it_in_silence(hive: Lake) -> None:
    """Here Spark's own namespaces are in memory, and Iceberg's are in the metastore."""
    create = "CREATE NAMESPACE spark_catalog.{} WITH DBPROPERTIES ('{}'='{}')"
    hive.refused(create.format("a", "encryption.keyid", "k1"), "Did you mean encryption.key-id?")
    hive.refused(create.format("a", KEY, "nope"), "Namespace spark_catalog.a", "'nope'")
    with pytest.raises(Exception, match=r"(?s)Namespace spark_catalog\.a: .*was not kept.*hint:"):
        hive.sql(create.format("a", KEY, "k1"))
    hive.sql("DROP NAMESPACE spark_catalog.a")
    assert not list(files_below(hive.warehouse / "a.db"))
