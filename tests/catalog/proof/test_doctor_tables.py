"""doctor on real tables: what clients without encryption made of them."""

from pathlib import Path

import pytest
from doubles.rest_catalog import RestCatalogDouble
from harness.files import change, secret_file
from harness.lake import COLUMNS, Lake

from pyspark_iceberg_crypto import verify_table
from pyspark_iceberg_crypto.doctor import DoctorTablesReport, diagnose, diagnose_tables
from pyspark_iceberg_crypto.doctor._session import SETTINGS

UNDER_A_KEY = "TBLPROPERTIES ('encryption.key-id'='k1', 'format-version'='3')"


def stock(lake: Lake, name: str, rows: bool = True) -> str:
    """A table that stock Iceberg makes under a key id."""
    table = lake.table(name, f"stock_{lake.kind}")
    lake.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg {UNDER_A_KEY}")
    if rows:
        lake.sql(f"INSERT INTO {table} VALUES (1, 'x', 'p')")
    return table


def kinds(found: DoctorTablesReport) -> list[tuple[str, str]]:
    return [(one.table.rpartition(".")[2], one.kind) for one in found.findings]


@pytest.mark.nightly
def test_what_stock_clients_wrote_on_rest(rest: Lake) -> None:
    lake = rest
    lake.insert(lake.create("good"), [1])
    lake.create("plain", key=None)
    lake.insert(lake.create("lost"), [1])
    for name in ("a", "b", "c"):
        stock(lake, name)
    stock(lake, "empty", rows=False)
    lost = lake.table("lost", "stock_rest")
    lake.sql(f"ALTER TABLE {lost} UNSET TBLPROPERTIES ('encryption.key-id')")
    namespace = f"{lake.catalog}.{lake.namespace}"
    found = diagnose_tables(lake.spark, namespace)
    assert (found.examined, found.encrypted) == (7, 5)
    assert found.counts == {
        "plaintext": 3,
        "key id removed": 1,
        "no kek": 1,
        "unauthenticated": 5,
    }
    assert kinds(found)[:5] == [
        *[(name, "plaintext") for name in ("a", "b", "c")],
        ("lost", "key id removed"),
        ("empty", "no kek"),
    ]
    shown = " ".join(str(found).split())
    assert "plaintext findings 3, means anyone who can read the storage" in shown
    assert "TBLPROPERTIES ('encryption.key-id'='k1') AS SELECT * FROM" in shown

    seen_by_stock = diagnose_tables(lake.spark, f"stock_rest.{lake.namespace}")
    assert seen_by_stock.counts == {"plaintext": 3, "key id removed": 1, "no kek": 1}

    # what the hints say
    lake.sql(f"ALTER TABLE {lake.table('empty')} SET TBLPROPERTIES ('comment'='repaired')")
    lake.sql(f"ALTER TABLE {lake.table('lost')} SET TBLPROPERTIES ('encryption.key-id'='k1')")
    reading = lake.with_options({"encryption.plaintext-files": "allow"})
    lake.sql(
        f"CREATE TABLE {lake.table('a2')} USING iceberg TBLPROPERTIES ('encryption.key-id'='k1') "
        f"AS SELECT * FROM {reading.table('a')}"
    )
    for name in ("a", "b", "c"):
        lake.sql(f"DROP TABLE {lake.table(name)}")
    repaired = diagnose(lake.spark, lake.catalog, tables=namespace)
    assert repaired.tables is not None
    assert repaired.tables.counts == {"unauthenticated": 4}
    assert repaired.ok, repaired
    assert [step.key_id for step in repaired.steps if step.key_id] == ["k1"] * 6, "the tables' key"
    assert verify_table(lake.spark, lake.table("a2")).ok


def test_what_stock_clients_wrote_where_metadata_is_signed(hadoop: Lake) -> None:
    hadoop.insert(hadoop.create("good"), [1])
    hadoop.insert(hadoop.create("list_gone"), [1])
    hadoop.insert(hadoop.create("list_replaced"), [1])
    stock(hadoop, "plain")
    plaintext_list = next(iter((hadoop.folder / "plain").glob("metadata/snap-*.avro")))
    for name in ("list_gone", "list_replaced"):
        (path,) = (hadoop.folder / name).glob("metadata/snap-*.avro")
        change(path, plaintext_list.read_bytes() if name == "list_replaced" else None)
    found = diagnose_tables(hadoop.spark, f"{hadoop.catalog}.{hadoop.namespace}")
    assert kinds(found) == [
        ("list_replaced", "tampered"),
        ("plain", "tampered"),
        ("plain", "plaintext"),
        ("list_gone", "unreadable"),
    ]
    assert all(one.hint for one in found.findings)


def test_a_listed_table_that_no_load_finds(hadoop: Lake) -> None:
    """It is a table nobody has looked at, and none of another format."""
    hadoop.insert(hadoop.create("good"), [1])
    listed = hadoop.folder / "ghost" / "metadata" / "copied.metadata.json"
    listed.parent.mkdir(parents=True)
    listed.write_text("{}")
    found = diagnose_tables(hadoop.spark, f"{hadoop.catalog}.{hadoop.namespace}")
    assert (kinds(found), found.others) == ([("ghost", "unchecked")], 0)
    assert not found.ok
    assert "NoSuchTableException" in found.findings[0].problem
    found = diagnose_tables(hadoop.spark, hadoop.table("nothing"))
    assert [one.problem for one in found.findings] == ["there is no such Iceberg table"]


def test_what_keeps_a_table_from_being_used(hadoop: Lake, tmp_path: Path) -> None:
    hadoop.insert(hadoop.create("t"), [1])
    hadoop.create("plain", key=None)
    name = f"{hadoop.namespace}.t"
    strict = hadoop.with_options(
        {"encryption.allowed-key-ids": "k2", "encryption.required": "true"}
    )
    examined = diagnose_tables(strict.spark, f"{strict.catalog}.{hadoop.namespace}")
    assert kinds(examined) == [("plain", "not encrypted"), ("t", "key unusable")]
    tried = diagnose(strict.spark, strict.catalog, key_ids=["k1", "k2"])
    (refused,) = [step for step in tried.steps if step.status.value == "failed"]
    assert (refused.name, refused.key_id, tried.exit_code) == (SETTINGS, "k1", 1)
    assert refused.detail.startswith(f"Catalog {strict.catalog}: encryption.key-id is 'k1'")
    strict.world.keystore.kms().check(strict.spark, strict.catalog)  # k2 alone
    off = hadoop.with_options({"encryption.metadata-authentication": "off"})
    assert kinds(diagnose_tables(off.spark, f"{off.catalog}.{name}")) == [("t", "unauthenticated")]
    wrong = secret_file(tmp_path / "password", "not it")
    locked = hadoop.with_options({"encryption.kms.keystore.password-file": str(wrong)})
    found = diagnose(locked.spark, locked.catalog, tables=f"{locked.catalog}.{name}")
    assert found.tables is not None
    assert found.tables.counts == {"unchecked": 1}, "and the steps say why"
    assert not found.ok
    assert diagnose_tables(hadoop.spark, f"{hadoop.catalog}.{name}").ok


@pytest.fixture
def rest(spark: object, world: object) -> Lake:
    return Lake(spark, world, "rest", "enc_rest")  # type: ignore[arg-type]


def test_what_cannot_be_looked_at_is_said(hadoop: Lake) -> None:
    """Names of nothing, and a catalog that does not start, beside a table that is as it should be."""
    table = hadoop.create()
    none = f"{hadoop.catalog}.{hadoop.namespace}.none"
    hadoop.spark.conf.set("spark.sql.catalog.broken", "no.such.Class")
    try:
        found = diagnose_tables(hadoop.spark, [table, none, "broken", "nosuch"])
    finally:
        hadoop.spark.conf.unset("spark.sql.catalog.broken")
    assert (found.examined, found.exit_code, found.counts) == (1, 2, {"unchecked": 3})
    problems = {one.table: one.problem for one in found.findings}
    assert problems[none] == "there is no such Iceberg table"
    assert "its tables cannot be listed" in problems["broken"]
    assert "There is no catalog 'nosuch'" in problems["nosuch"]


def test_a_catalog_that_does_not_list_is_said_once(hadoop: Lake) -> None:
    """A REST server that starts a session, and knows no namespaces."""
    server = RestCatalogDouble().start()
    prefix = "spark.sql.catalog.unlisting"
    settings = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "rest",
        f"{prefix}.uri": server.url,
    }
    for name, value in settings.items():
        hadoop.spark.conf.set(name, value)
    try:
        found = diagnose_tables(hadoop.spark, "unlisting")
    finally:
        for name in settings:
            hadoop.spark.conf.unset(name)
        server.stop()
    assert (found.exit_code, found.counts) == (2, {"unchecked": 1})
    assert found.findings[0].problem.count("its tables cannot be listed") == 1
