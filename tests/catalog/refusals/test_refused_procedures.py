"""Procedures that would put plaintext into an encrypted table: refused, with no file left behind."""

from collections.abc import Iterator

import pytest
from harness.files import MARKER, untouched
from harness.jars import BUILT
from harness.lake import Lake
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def parquet_source(spark: SparkSession) -> Iterator[str]:
    """A plain Parquet table of Spark's own, in the session catalog."""
    name = "spark_catalog.default.parquet_source"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, note STRING, part STRING) USING parquet")
    spark.sql(f"INSERT INTO {name} VALUES (1, '{MARKER}', 'p')")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def table(lake: Lake) -> str:
    return lake.insert(lake.create(partition="part"), [1])


def refused(
    lake: Lake, procedure: str, arguments: str = "", table: str = "t", words: tuple[str, ...] = ()
) -> None:
    extra = f", {arguments}" if arguments else ""
    name = lake.table(table)
    call = f"CALL {lake.catalog}.system.{procedure}(table => '{name}'{extra})"
    lake.refused(call, name, *words)


def test_statistics_are_refused(lake: Lake, table: str) -> None:
    instead = ("encryption.statistics=encrypt", "clients without this catalog")
    refused(lake, "compute_table_stats", words=instead)
    refused(lake, "compute_partition_stats", words=instead)
    assert lake.ids(table) == [1]


def test_add_files_is_refused(lake: Lake, parquet_source: str) -> None:
    table = lake.insert(lake.create(), [1])
    refused(lake, "add_files", f"source_table => '{parquet_source}'")
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [1]


def test_snapshot_into_an_encrypted_table_is_refused(lake: Lake, parquet_source: str) -> None:
    properties = "properties => map('encryption.key-id', 'k1', 'format-version', '3')"
    refused(lake, "snapshot", f"source_table => '{parquet_source}', {properties}", "new")
    if lake.kind != "hadoop":  # its namespaces have no properties
        namespace = f"{lake.catalog}.{lake.namespace}"
        lake.sql(f"ALTER NAMESPACE {namespace} SET DBPROPERTIES ('encryption.key-id'='k2')")
        refused(lake, "snapshot", f"source_table => '{parquet_source}'", "new")
        source = f"system.snapshot(source_table => '{parquet_source}', table => "
        kept = (lake.table("new"), "snapshot keeps a table's files as they are")
        lake.refused(f"CALL spark_catalog.{source}'{lake.table('new')}')", *kept)
        stock = f"stock_{lake.kind}"  # which gives tables no key of their namespace
        lake.sql(f"USE {stock}")
        try:
            lake.sql(f"CALL {lake.catalog}.{source}'{lake.namespace}.new')")
            assert lake.value(f"SELECT count(*) FROM {stock}.{lake.namespace}.new") == 1
        finally:
            lake.sql("USE spark_catalog.default")
            lake.sql(f"DROP TABLE IF EXISTS {stock}.{lake.namespace}.new")
    assert not lake.spark.catalog.tableExists(lake.table("new"))


@pytest.mark.catalogs("hive")
def test_migrate_into_an_encrypted_table_is_refused(lake: Lake, parquet_source: str) -> None:
    """Iceberg looks in spark_catalog for what to migrate, whatever catalog is asked: only Hive's tables are there."""
    if lake.kind != "hive":
        lake.insert(lake.create(), [1])
        with untouched(lake.folder), pytest.raises(Exception, match="Cannot find source table"):
            lake.sql(f"CALL {lake.catalog}.system.migrate(table => '{lake.namespace}.none')")
        return
    key = "map('encryption.key-id', 'k1', 'format-version', '3')"
    lake.refused(
        f"CALL spark_catalog.system.migrate(table => '{parquet_source}', properties => {key})",
        "parquet_source",
    )
    assert lake.ids(parquet_source) == [1]


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_files_of_an_encrypted_table_are_not_used_in_another(lake: Lake, table: str) -> None:
    """What Iceberg says there does not tell why, or what to do."""
    plain = lake.create("plain", key=None, partition="part")
    system = f"CALL {lake.catalog}.system"
    instead = (table, "keys that only this table's metadata has", f"AS SELECT * FROM {table}")
    source = f"source_table => '{table}'"
    lake.refused(f"{system}.snapshot({source}, table => '{lake.namespace}.new')", *instead)
    lake.refused(f"{system}.add_files(table => '{plain}', {source})", *instead)
    lake.refused(f"{system}.migrate(table => '{table}')", *instead)
    data = f"`parquet`.`{lake.folder}/t/data`"  # no name leads to its keys
    with untouched(lake.folder / "t"), pytest.raises(Exception, match="encrypted footer"):
        lake.sql(f"{system}.add_files(table => '{plain}', source_table => '{data}')")
    assert lake.sql(f"SELECT * FROM {plain}") == []
    assert lake.ids(table) == [1]


@pytest.mark.catalogs("jdbc")
def test_java_actions_that_write_plaintext_are_refused(lake: Lake, table: str) -> None:
    """They pass no procedure: the guard of the table's files stops them."""
    jvm, session = lake.spark._jvm, lake.spark._jsparkSession
    assert jvm is not None
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(session)
    loaded = lake.java(table, refresh=False)
    copied = actions.rewriteTablePath(loaded).rewriteLocationPrefix(loaded.location(), "file:/new")
    for action in (
        copied,
        actions.computeTableStats(loaded),
        actions.computePartitionStats(loaded),
    ):
        with pytest.raises(Exception, match=r"(?s)(Plaintext|NotSupported)Exception: .*hint: "):
            action.execute()
    lake.assert_encrypted()
    assert lake.ids(table) == [1]


def test_a_procedure_without_a_table(hadoop: Lake) -> None:
    """Iceberg's own say so themselves; in Spark 3.5, its parser knows no NULL."""
    said = "== SQL ==" if BUILT.spark == "3.5" else "'table' is not set"
    system = f"CALL {hadoop.catalog}.system"
    for call, says in (
        ("add_files(table => NULL, source_table => 'x')", said),
        ("compute_table_stats(table => NULL)", said),
        ("purge_without_key(table => NULL)", "table of purge_without_key is NULL"),
        ("authenticate_metadata(table => 'db.t', metadata_file => NULL)", "metadata_file of "),
    ):
        with pytest.raises(Exception, match=says):
            hadoop.sql(f"{system}.{call}")


def test_add_files_takes_its_source_from_the_session_catalog(lake: Lake) -> None:
    """As Iceberg does, whatever the current catalog is."""
    lake.insert(lake.create("source"), [1])  # of the same name in two catalogs
    plain = lake.create("plain", key=None)
    call = (
        f"CALL {lake.catalog}.system.add_files(table => '{lake.namespace}.plain', source_table => "
    )
    told = "add_files uses a table's files as they are"
    lake.refused(f"{call}'{lake.table('source')}')", told)
    if lake.kind == "hive":  # where spark_catalog has the same tables
        lake.refused(f"{call}'{lake.namespace}.source')", told)
        return
    source = f"spark_catalog.{lake.namespace}.source"
    lake.sql(f"CREATE NAMESPACE spark_catalog.{lake.namespace}")
    lake.sql(f"CREATE TABLE {source} USING parquet AS SELECT 1L AS id, 'n' AS note, 'p' AS part")
    lake.sql(f"USE {lake.catalog}")
    try:
        lake.sql(f"{call}'{lake.namespace}.source')")
    finally:
        lake.sql("USE spark_catalog.default")
        lake.sql(f"DROP NAMESPACE spark_catalog.{lake.namespace} CASCADE")
    assert lake.value(f"SELECT count(*) FROM {plain}.files") == 1
