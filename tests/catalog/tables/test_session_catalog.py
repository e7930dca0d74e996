"""Tables of other formats in spark_catalog: never in the place of encrypted ones, and dropped with their files."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness.files import everything_below, files_below, magic, untouched
from harness.jars import BUILT
from harness.lake import Lake
from harness.sessions import OtherSession, save_as_table
from harness.world import KINDS, World, create_lock_tables
from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto.jvm._jvm import session_settings as jvm_settings

KEY = "encryption.key-id"
KEYED = f"TBLPROPERTIES ('{KEY}'='k1')"
SELECT = "SELECT 'MARKER' AS note"

# Spark's statements and writers that create a table, or replace one, of another format.
STATEMENTS = (
    "CREATE TABLE {} (note STRING) USING parquet {}",
    "CREATE TABLE {} USING orc {} AS " + SELECT,
    "CREATE OR REPLACE TABLE {} (note STRING) USING parquet {}",
    "CREATE OR REPLACE TABLE {} USING csv {} AS " + SELECT,
    "CREATE TABLE {} LIKE default.{source} USING parquet {}",
)
WRITERS: tuple[Callable[[DataFrame, str], Any], ...] = (
    lambda rows, table: rows.write.saveAsTable(table),
    lambda rows, table: rows.write.mode("overwrite").saveAsTable(table),
    lambda rows, table: rows.write.mode("append").format("json").saveAsTable(table),
    lambda rows, table: rows.writeTo(table).using("parquet").create(),
    lambda rows, table: rows.writeTo(table).using("parquet").createOrReplace(),
)


@pytest.fixture
def both(hive: Lake) -> Iterator[Lake]:
    """The namespace in both catalogs of spark_catalog: in the metastore, and in Spark's own, which is in memory."""
    hive.sql(f"CREATE NAMESPACE spark_catalog.{hive.namespace}")
    yield hive
    hive.sql(f"DROP NAMESPACE spark_catalog.{hive.namespace} CASCADE")


@pytest.fixture
def source(both: Lake) -> Iterator[str]:
    """A plaintext table, without any key."""
    name = f"source_{both.namespace}"
    both.sql(f"CREATE TABLE spark_catalog.default.{name} USING parquet AS {SELECT}")
    yield name
    both.sql(f"DROP TABLE spark_catalog.default.{name}")


def unset_key(lake: Lake) -> None:
    """Takes the namespace's key away, for which Spark 3.5 has no SQL."""
    jvm: Any = lake.spark._jvm
    gateway: Any = lake.spark.sparkContext._gateway
    change = jvm.org.apache.spark.sql.connector.catalog.NamespaceChange
    names, changes = gateway.new_array(jvm.java.lang.String, 1), gateway.new_array(change, 1)
    names[0], changes[0] = lake.namespace, change.removeProperty(KEY)
    session_catalog(lake.spark, lake.catalog).alterNamespace(names, changes)


def session_with(lake: Lake, option: str, value: str) -> SparkSession:
    """A session whose spark_catalog has one more option."""
    other = lake.spark.newSession()
    other.conf.set(f"spark.sql.catalog.spark_catalog.{option}", value)
    return other


def refused(lake: Lake, run: Callable[[], Any], says: str) -> None:
    """It fails with a hint, and leaves no file in either catalog's folders. Spark may refuse REPLACE TABLE itself."""
    own = lake.world.root / "spark-warehouse"
    with (
        untouched(lake.folder),
        untouched(own),
        pytest.raises(Exception, match=rf"(?s){says}.*hint: |does not support REPLACE TABLE"),
    ):
        run()


def session_catalog(spark: SparkSession, name: str = "spark_catalog") -> Any:
    """A catalog, as Spark calls it."""
    return spark._jsparkSession.sessionState().catalogManager().catalog(name)


def identifier(lake: Lake, name: str = "t") -> Any:
    jvm, gateway = lake.spark._jvm, lake.spark.sparkContext._gateway
    assert jvm is not None and gateway is not None
    namespace = gateway.new_array(jvm.String, 1)
    namespace[0] = lake.namespace
    return jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, name)


def of_format(lake: Lake, provider: str, properties: dict[str, str]) -> list[tuple[Any, ...]]:
    """A table, as Spark gives it to a catalog: since 4.1 as one object, too."""
    jvm, gateway = lake.spark._jvm, lake.spark.sparkContext._gateway
    assert jvm is not None and gateway is not None
    connector = jvm.org.apache.spark.sql.connector
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL("id BIGINT")
    transforms = gateway.new_array(connector.expressions.Transform, 0)
    given = {"provider": provider, **properties}
    forms: list[tuple[Any, ...]] = [(schema, transforms, given)]
    if BUILT.spark == "4.1":
        columns = connector.catalog.CatalogV2Util.structTypeToV2Columns(schema)
        info = connector.catalog.TableInfo.Builder().withColumns(columns)
        forms.append((info.withPartitions(transforms).withProperties(given).build(),))
    return forms


def test_a_property_of_encryption_is_refused(both: Lake, source: str) -> None:
    """It would be kept, and nothing encrypted."""
    name = f"{both.namespace}.p"
    does_nothing = rf"Table spark_catalog.{name}: {KEY} would do nothing"
    for statement in STATEMENTS:
        sql = statement.format(name, KEYED, source=source)
        refused(both, lambda sql=sql: both.sql(sql), does_nothing)
    rows = both.spark.sql(SELECT)
    refused(both, lambda: rows.write.option(KEY, "k1").saveAsTable(name), does_nothing)
    both.sql(f"CREATE TABLE {name} (note STRING) USING parquet")
    alter = f"ALTER TABLE {name} SET TBLPROPERTIES ('{KEY}'='k1', 'b'='c')"
    refused(both, lambda: both.sql(alter), does_nothing)
    both.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('b'='c')")
    assert both.properties(name)["b"] == "c"
    rows.write.mode("append").saveAsTable(name)
    keyed = rows.write.option(KEY, "k1")
    refused(both, lambda: keyed.mode("append").saveAsTable(name), does_nothing)
    with suppress(Exception):  # before the drop, or not at all
        keyed.mode("overwrite").saveAsTable(name)
    assert both.rows(f"SELECT * FROM {name}") == [("MARKER",)]
    rows.write.mode("overwrite").saveAsTable(name)
    assert both.rows(f"SELECT * FROM {name}") == [("MARKER",)]


def test_no_plaintext_where_a_namespace_has_a_key(both: Lake, source: str) -> None:
    """Views are not concerned, and Iceberg's tables get the key."""
    name = f"{both.namespace}.p"
    both.sql(f"CREATE TABLE {name}_before USING parquet AS {SELECT}")
    both.sql(f"ALTER NAMESPACE enc_hive.{both.namespace} SET DBPROPERTIES ('{KEY}'='k2')")
    plaintext = rf"Table spark_catalog.{name}: a table that is not Iceberg's would be plaintext"
    for statement in STATEMENTS:
        sql = statement.format(name, "", source=source)
        refused(both, lambda sql=sql: both.sql(sql), plaintext)
    rows = both.spark.sql(SELECT)
    for write in WRITERS:
        refused(both, lambda write=write: write(rows, name), plaintext)
    assert not both.spark.catalog.tableExists(name)
    both.sql(f"CREATE OR REPLACE TEMPORARY VIEW v_{both.namespace} AS {SELECT}")
    both.sql(f"DROP VIEW v_{both.namespace}")
    rows.write.format("iceberg").saveAsTable(name)
    assert both.properties(name)[KEY] == "k2"
    assert both.magics("p") == {b"PARE", b"AGS1"}
    # a table that was there stays what it is; a refusal comes before its rows are gone
    rows.write.mode("append").saveAsTable(f"{name}_before")
    overwrite = rows.write.mode("overwrite")
    refused(both, lambda: overwrite.saveAsTable(f"{name}_before"), "would be plaintext")
    assert both.rows(f"SELECT * FROM {name}_before") == [("MARKER",)] * 2
    # what may replace a table may not make one later
    unset_key(both)
    overwrite.saveAsTable(f"{name}_before")
    both.sql(f"ALTER TABLE {name}_before RENAME TO {name}_after")
    both.sql(f"ALTER NAMESPACE enc_hive.{both.namespace} SET DBPROPERTIES ('{KEY}'='k2')")
    refused(both, lambda: overwrite.saveAsTable(f"{name}_before"), "would be plaintext")


@pytest.mark.parametrize(
    "form", ["createTable", "stageCreate", "stageReplace", "stageCreateOrReplace"]
)
def test_what_spark_calls(hive: Lake, form: str) -> None:
    """Each form, also those that SQL of this Spark does not use."""
    table = hive.insert(hive.create(), [1])
    create, ident = getattr(session_catalog(hive.spark), form), identifier(hive)
    for properties, says in (({KEY: "k1"}, "would do nothing"), ({}, "would take its place")):
        for given in of_format(hive, "parquet", properties):
            refused(hive, lambda given=given: create(ident, *given), says)
    assert hive.ids(table) == [1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("encryption.required", "true"),
        pytest.param("encryption.plaintext-tables", "refuse", marks=pytest.mark.nightly),
        pytest.param(f"table-default.{KEY}", "k1", marks=pytest.mark.nightly),
    ],
)
def test_no_plaintext_where_the_catalog_encrypts(
    both: Lake, source: str, option: str, value: str
) -> None:
    strict = session_with(both, option, value)
    name = f"{both.namespace}.p"
    plaintext = rf"Table spark_catalog.{name}: a table that is not Iceberg's would be plaintext"
    sql = STATEMENTS[0].format(name, "")
    refused(both, lambda: strict.sql(sql), plaintext)
    rows = strict.sql(SELECT)
    refused(both, lambda: rows.write.saveAsTable(name), plaintext)
    overwrite = rows.write.mode("overwrite")
    refused(both, lambda: overwrite.saveAsTable(f"default.{source}"), "would be plaintext")
    assert both.rows(f"SELECT * FROM default.{source}") == [("MARKER",)]


def test_formats_that_are_icebergs(both: Lake) -> None:
    """With parquet-enabled, spark_catalog makes an encrypted Iceberg table of it. Spark itself may not ask for one."""
    session = session_with(both, "parquet-enabled", "true")
    session.sql(
        "SHOW NAMESPACES IN spark_catalog"
    ).collect()  # loads it with this session's options
    catalog = session_catalog(session)
    for given in of_format(both, "parquet", {KEY: "k1"}):
        catalog.createTable(identifier(both), *given)
        assert both.properties(both.table())[KEY] == "k1"
        session.sql(f"DROP TABLE {both.namespace}.t")
    for given in of_format(both, "orc", {KEY: "k1"}):
        refused(both, lambda given=given: catalog.createTable(identifier(both), *given), KEY)
    sql = STATEMENTS[0].format(f"{both.namespace}.t", KEYED)
    refused(both, lambda: session.sql(sql), KEY)


def test_no_plaintext_in_the_place_of_an_encrypted_table(both: Lake) -> None:
    """Spark's own catalog would drop that first, past all checks of a drop."""
    table = both.insert(both.create(), [1])
    name = f"spark_catalog.{both.namespace}.t"
    in_place = rf"Table {name}: it is encrypted or has keys, and a plaintext table"
    rows = both.spark.sql(SELECT)
    replacing = [
        lambda: both.sql(f"REPLACE TABLE {name} USING parquet AS {SELECT}"),
        lambda: both.sql(f"CREATE OR REPLACE TABLE {name} (note STRING) USING parquet"),
        lambda: both.sql(f"CREATE OR REPLACE TABLE {name} USING orc AS {SELECT}"),
        lambda: rows.write.mode("overwrite").saveAsTable(name),
        lambda: rows.write.mode("append").saveAsTable(name),
        lambda: rows.writeTo(name).using("parquet").createOrReplace(),
    ]
    for replace in replacing:
        refused(both, replace, in_place)
    assert both.ids(table) == [1]
    both.sql(f"DROP TABLE {name}")
    both.sql(f"CREATE TABLE {name} (note STRING) USING parquet")


def test_saving_a_table_drops_none_that_is_refused(both: Lake) -> None:
    """In Spark's own catalog, saveAsTable drops what it overwrites before any rule sees its plan."""
    name = f"spark_catalog.{both.namespace}.t"
    both.sql(f"CREATE TABLE {name} USING parquet AS {SELECT}")
    own = both.world.root / "spark-warehouse" / f"{both.namespace}.db"
    files = everything_below(own)
    table = both.insert(both.create(), [1])  # of the same name, as in a metastore that both share
    rows = both.spark.sql(SELECT)
    refused(
        both,
        lambda: rows.write.mode("overwrite").saveAsTable(name),
        "it is encrypted or has keys",
    )
    assert both.ids(table) == [1]
    both.sql(f"DROP TABLE {name}")
    assert both.rows(f"SELECT * FROM {name}") == [("MARKER",)]
    assert everything_below(own) == files


def without(lake: Lake, *catalogs: str) -> SparkSession:
    """A session that does not set up these catalogs: spark_catalog is then Spark's own."""
    other = lake.spark.newSession()
    for key in jvm_settings(other):
        if key.removeprefix("spark.sql.catalog.").split(".")[0] in catalogs:
            other.conf.unset(key)
    other.conf.set("spark.sql.legacy.createHiveTableByDefault", "false")  # as in Spark 4
    other.sql(f"USE spark_catalog.{lake.namespace}")
    return other


# Statements that name no catalog and no format.
FORGOTTEN: tuple[Callable[[SparkSession], Any], ...] = (
    lambda s: s.sql(f"CREATE TABLE orders (note STRING) {KEYED}"),
    lambda s: s.sql(f"CREATE TABLE orders {KEYED} AS {SELECT}"),
    lambda s: s.sql(f"CREATE TABLE orders LIKE plain {KEYED}"),
    lambda s: s.sql(f"CREATE TABLE orders LIKE v {KEYED}"),
    lambda s: s.sql(f"CREATE TABLE orders LIKE plain STORED AS ORC {KEYED}"),
    lambda s: s.sql(SELECT).writeTo("orders").tableProperty(KEY, "k1").create(),
    lambda s: s.sql(SELECT).write.option(KEY, "k1").saveAsTable("orders"),
    lambda s: s.sql(SELECT).write.option(KEY, "k1").mode("append").saveAsTable("plain"),
    lambda s: s.sql(f"ALTER TABLE plain SET {KEYED}"),
)
OVERWRITES = lambda s: (  # noqa: E731
    s.sql(SELECT).write.option(KEY, "k1").mode("overwrite").saveAsTable("plain")
)


def test_a_forgotten_name_of_the_catalog(both: Lake) -> None:
    """Spark's own catalog would keep the property, and write plaintext. Where no catalog of ours is, that is its."""
    both.sql(f"CREATE TABLE spark_catalog.{both.namespace}.plain USING parquet AS {SELECT}")
    session = without(both, "spark_catalog")
    session.sql(f"CREATE TEMPORARY VIEW v AS {SELECT}")
    # Spark 3.5 and 4.0 have dropped the table before anybody else sees this statement
    seen = (*FORGOTTEN, OVERWRITES) if BUILT.spark == "4.1" else FORGOTTEN
    for run in seen:
        says = rf"Table spark_catalog\.{both.namespace}\.(orders|plain): {KEY} would do nothing"
        refused(both, lambda run=run: run(session), says)
    with pytest.raises(Exception, match=rf"hint: .*enc_hive\.{both.namespace}\.orders"):
        FORGOTTEN[0](session)
    session.sql("DROP VIEW v")
    assert [row.tableName for row in session.sql("SHOW TABLES").collect()] == ["plain"]
    assert session.table("plain").count() == 1
    session.sql("CREATE TABLE other (note STRING) TBLPROPERTIES ('a'='b')")
    session.sql(f"CREATE TABLE IF NOT EXISTS other (note STRING) {KEYED}")  # it is there
    ours = [f"enc_{kind}" for kind in KINDS]
    alone = without(both, "spark_catalog", *ours)
    for run in FORGOTTEN[::2]:
        run(alone)
        alone.sql("DROP TABLE IF EXISTS orders")


def test_a_catalog_that_encrypts_by_itself_is_not_kept_from_it(both: Lake) -> None:
    """Iceberg's own class for spark_catalog, with Hive's."""
    stock = both.spark.newSession()
    stock.conf.set(
        "spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog"
    )
    ours, stocks = "spark.sql.catalog.spark_catalog.", "spark.sql.catalog.stock_hive."
    settings = jvm_settings(stock)
    for key in settings:
        if key.startswith(ours):
            stock.conf.unset(key)
    for key, value in settings.items():
        if key.startswith(stocks):
            stock.conf.set(ours + key.removeprefix(stocks), value)
    name, v3 = f"spark_catalog.{both.namespace}.t", f"'format-version'='3', '{KEY}'='k1'"
    stock.sql(f"CREATE TABLE {name} (note STRING) USING iceberg TBLPROPERTIES ({v3})")
    stock.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('encryption.data-key-length'='32')")
    stock.sql(f"DROP TABLE {name}")


def metastore(lake: Lake) -> Any:
    """A client of the embedded Hive metastore."""
    jvm, hadoop = lake.spark._jvm, lake.spark._jsparkSession.sessionState().newHadoopConf()
    assert jvm is not None
    hive = jvm.org.apache.hadoop.hive
    return hive.metastore.HiveMetaStoreClient(hive.conf.HiveConf(hadoop, hadoop.getClass()))


def test_a_table_that_is_not_icebergs_is_dropped_with_its_files(both: Lake) -> None:
    """Iceberg's catalog of Hive drops any entry of the metastore, says so, and leaves all files."""
    name = f"spark_catalog.{both.namespace}.t"
    own = both.world.root / "spark-warehouse" / f"{both.namespace}.db"
    both.create(key=None)
    client = metastore(both)
    entry = client.getTable(both.namespace, "t")
    entry.getParameters().put("table_type", "OTHER")
    client.alter_table(both.namespace, "t", entry)
    both.sql(f"CREATE TABLE {name} USING parquet AS {SELECT}")
    assert both.rows(f"SELECT * FROM {name}") == [("MARKER",)]
    both.sql(f"DROP TABLE {name}")
    assert not everything_below(own)
    assert client.tableExists(both.namespace, "t")
    client.dropTable(both.namespace, "t")
    client.close()


def test_an_iceberg_table_without_metadata_is_not_sparks_to_drop(both: Lake) -> None:
    """The metastore says that it is Iceberg's: Spark's own catalog would delete a folder."""
    name = f"spark_catalog.{both.namespace}.t"
    own = both.world.root / "spark-warehouse" / f"{both.namespace}.db"
    both.sql(f"CREATE TABLE {name} USING parquet AS {SELECT}")
    files = everything_below(own)
    both.insert(both.create(), [1])
    data = set(files_below(both.folder))
    for metadata in both.folder.rglob("*.metadata.json"):
        metadata.unlink()
    with pytest.raises(Exception, match="metadata.json does not exist"):
        both.sql(f"DROP TABLE {name}")
    assert session_catalog(both.spark).dropTable(identifier(both))
    client = metastore(both)
    assert not client.tableExists(both.namespace, "t")
    client.close()
    assert everything_below(own) == files
    assert set(files_below(both.folder)) == data


def test_a_namespace_with_value_keys_is_not_dropped(both: Lake) -> None:
    """With CASCADE, a metastore drops tables without asking about each."""
    keys = session_with(both, "encryption.value-key-table", f"{both.namespace}.keys")
    keys.sql("CALL spark_catalog.system.create_value_key(name => 'a', key_id => 'k1')").collect()
    for name in (both.namespace, both.namespace.upper()):
        refused(
            both,
            lambda name=name: keys.sql(f"DROP NAMESPACE spark_catalog.{name} CASCADE"),
            "it keeps value keys",
        )
    for name in (f"{both.namespace}.keys", f"{both.namespace.upper()}.KEYS"):
        drop = f"DROP TABLE spark_catalog.{name}"
        refused(both, lambda drop=drop: keys.sql(drop), "it keeps value keys")
    assert len(both.properties(f"spark_catalog.{both.namespace}.keys")) > 1


@pytest.mark.nightly
def test_one_metastore(world: World, tmp_path: Path) -> None:
    """Where Spark's own catalog and Iceberg's are the same Hive metastore."""
    warehouse = tmp_path / "warehouse"
    conf = world.session_conf(tmp_path / "metastore") | {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.sql.catalog.spark_catalog.warehouse": str(warehouse),
    }
    with OtherSession(conf) as spark:
        spark.do(create_lock_tables)
        refused = partial(pytest.raises, RuntimeError)
        spark.sql(f"CREATE DATABASE pii WITH DBPROPERTIES ('{KEY}'='k2')")
        with refused(match="would be plaintext"):
            spark.sql(f"CREATE TABLE pii.p USING parquet AS {SELECT}")
        with refused(match="would be plaintext"):
            spark.do(save_as_table, SELECT, "pii.p", "overwrite")
        spark.sql(f"CREATE TABLE pii.t USING iceberg AS {SELECT}")
        for mode in ("overwrite", "append"):
            with refused(match="it is encrypted or has keys"):
                spark.do(save_as_table, SELECT, "pii.t", mode)
        with refused(match="it is encrypted or has keys|does not support REPLACE TABLE"):
            spark.sql("CREATE OR REPLACE TABLE pii.t (note STRING) USING parquet")
        assert spark.sql("SELECT * FROM pii.t") == [{"note": "MARKER"}]
        assert {magic(path) for path in files_below(warehouse)} == {b"PARE", b"AGS1"}

        spark.do(save_as_table, SELECT, "default.p", "overwrite")
        spark.do(save_as_table, SELECT, "default.p", "overwrite")
        assert spark.sql("SELECT * FROM default.p") == [{"note": "MARKER"}]
        assert everything_below(warehouse / "p")
        spark.sql("DROP TABLE default.p")
        assert not everything_below(warehouse / "p")

        spark.sql("CALL spark_catalog.system.create_value_key(name => 'a', key_id => 'k1')")
        with refused(match="it keeps value keys"):
            spark.sql("DROP DATABASE encryption CASCADE")
        spark.sql("DROP DATABASE pii CASCADE")  # as the guide says of a metastore's own drop
        assert not everything_below(warehouse / "pii.db")
