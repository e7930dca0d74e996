"""CALL verify_encryption: a table, a namespace, a catalog."""

import pytest
from harness.lake import Lake
from harness.world import World
from pyspark.sql import Row, SparkSession

from pyspark_iceberg_crypto import ConfigurationError, TableNotFoundError, typed_errors

pytestmark = pytest.mark.catalogs("rest")


@pytest.fixture
def rest(spark: SparkSession, world: World) -> Lake:
    """It has views, and namespaces within namespaces: Hadoop has no views, Hive no such namespaces."""
    return Lake(spark, world, "rest", "enc_rest")


def verify(lake: Lake, arguments: str) -> list[Row]:
    with typed_errors():
        return lake.sql(f"CALL {lake.catalog}.system.verify_encryption({arguments})")


def test_a_table_in_rows(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1, 2])
    rows = verify(lake, f"table => '{lake.namespace}.t', structure => true, all_snapshots => true")
    assert {row.table for row in rows} == {table}
    assert not [row for row in rows if row.problem is not None or row.unchecked]
    whole, *kinds = rows
    assert (whole.kind, whole.encrypted, whole.files) == (
        "table",
        True,
        sum(r.files for r in kinds),
    )
    assert {(row.kind, row.magic, row.encrypted) for row in kinds} == {
        ("data", "PARE", True),
        ("manifest", "AGS1", True),
        ("manifest list", "AGS1", True),
        ("metadata file", "JSON", False),
    }


def test_a_problem_is_a_row(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    victim = next(path for path in lake.files() if path.suffix == ".parquet")
    victim.unlink()
    rows = verify(lake, f"table => '{table}'")
    assert (rows[0].kind, rows[0].encrypted, rows[0].problem) == (
        "table",
        False,
        "problems: 1, not checked: 0",
    )
    (problem,) = [row for row in rows if row.path is not None]
    assert (problem.kind, problem.code, problem.unchecked) == ("data", "missing", False)
    assert problem.path.endswith(victim.name)
    assert problem.hint


def test_a_namespace_and_those_within_it(rest: Lake) -> None:
    rest.insert(rest.create("one"), [1])
    rest.sql(f"INSERT INTO {rest.create('two', key=None)} VALUES (1, 'x', 'p')")
    rest.sql(f"CREATE NAMESPACE {rest.catalog}.{rest.namespace}.within")
    inner = f"{rest.catalog}.{rest.namespace}.within.three"
    rest.sql(f"CREATE TABLE {inner} (id INT) TBLPROPERTIES ('encryption.key-id'='k1')")
    rest.sql(f"CREATE VIEW {rest.table('v')} AS SELECT 1 AS one")
    rows = verify(rest, f"namespace => '{rest.namespace}'")
    by_table = {
        row.table: row for row in rows if row.kind in ("table", "view") and row.path is None
    }
    assert {name: row.encrypted for name, row in by_table.items()} == {
        rest.table("one"): True,
        rest.table("two"): False,
        inner: True,
        rest.table("v"): None,
    }
    assert by_table[rest.table("v")].kind == "view"
    two = f"{rest.namespace}.two"
    rows = verify(rest, f"namespace => '{rest.namespace}', except_tables => array('{two}')")
    (row,) = [row for row in rows if row.table == rest.table("two")]
    assert (row.kind, row.encrypted, row.files, row.problem) == ("left out", False, 0, None)
    assert {row.table for row in rows} == set(by_table)
    assert not [row for row in rows if row.problem is not None]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ("table => '{ns}.absent'", TableNotFoundError, "There is no Iceberg table"),
        ("table => 'nowhere.t'", TableNotFoundError, "has no namespace nowhere"),
        ("table => '{ns}.v'", TableNotFoundError, "is a view"),
        ("namespace => 'nowhere'", TableNotFoundError, "has no namespace nowhere"),
        ("table => '{ns}.t', namespace => '{ns}'", ConfigurationError, "Both a table and"),
        ("table => '{ns}.t', except_tables => array('{ns}.t')", ConfigurationError, "Both a table"),
        (
            "namespace => '{ns}', except_tables => array('{ns}.u')",
            TableNotFoundError,
            "leave out .*u",
        ),
        ("table => '{ns}.t', sample => 0", ConfigurationError, "share of the files"),
        ("table => '{ns}.t', sample => 1.5", ConfigurationError, "share of the files"),
    ],
)
def test_bad_arguments(rest: Lake, arguments: str, error: type[Exception], words: str) -> None:
    rest.create()
    rest.sql(f"CREATE OR REPLACE VIEW {rest.table('v')} AS SELECT 1 AS one")
    with pytest.raises(error, match=words):
        verify(rest, arguments.format(ns=rest.namespace))


@pytest.mark.nightly
@pytest.mark.catalogs("hive")
def test_the_session_catalog(lake: Lake, spark: SparkSession) -> None:
    """Iceberg tables are checked; views are skipped; of another table nothing is known."""
    table, view, other = (f"spark_catalog.default.{one}_{lake.namespace}" for one in "tvp")
    spark.sql(
        f"CREATE TABLE {table} (id INT) USING iceberg TBLPROPERTIES ('encryption.key-id'='k1')"
    )
    spark.sql(f"CREATE VIEW {view} AS SELECT 1 AS one")
    spark.sql(f"CREATE TABLE {other} (id INT) USING parquet")
    try:
        rows = spark.sql("CALL spark_catalog.system.verify_encryption(namespace => 'default')")
        found = {row.table: row for row in rows.collect() if row.kind in ("table", "view")}
    finally:
        for drop in (f"TABLE {table}", f"VIEW {view}", f"TABLE {other}"):
            spark.sql(f"DROP {drop}")
    assert {
        name: (found[name].kind, found[name].encrypted, found[name].unchecked)
        for name in (table, view, other)
    } == {
        table: ("table", True, False),
        view: ("view", None, False),
        other: ("table", False, True),
    }
    assert "no Iceberg table" in found[other].problem
