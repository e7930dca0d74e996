"""What stock Iceberg does: the left column of README's table, and limits that it has us have.

When Iceberg fixes one of these, its test says so. docs/stock-iceberg.md says where the right column is tested.
"""

import uuid
from pathlib import Path

import pytest
from harness.files import MARKER, everything_below, magic, marker_in
from harness.keystore import make_keystore
from harness.lake import COLUMNS, Lake, tblproperties
from harness.world import STOCK, World, catalog_conf
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table

KEY = {"encryption.key-id": "k1", "format-version": "3"}


@pytest.fixture
def stock(hive: Lake) -> Lake:
    """Stock Iceberg's Hive catalog, with our keystore as its KMS: the one that encrypts."""
    other = object.__new__(Lake)
    other.__dict__.update(hive.__dict__, catalog="stock_hive", _seen=set())
    return other


def hive_of(stock: Lake) -> Lake:
    """Our catalog over the same tables."""
    ours = object.__new__(Lake)
    ours.__dict__.update(stock.__dict__, catalog="enc_hive", _seen=set())
    return ours


def create(stock: Lake, **properties: str) -> str:
    table = stock.table()
    every = {**KEY, **properties}
    stock.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg {tblproperties(every)}")
    return table


def insert(stock: Lake, table: str, i: int = 1) -> None:
    stock.sql(f"INSERT INTO {table} VALUES ({i}, '{MARKER}-{i}', 'p')")


def test_a_create_without_a_format_version_fails(stock: Lake) -> None:
    key = tblproperties({"encryption.key-id": "k1"})
    with pytest.raises(Exception, match=r"Invalid properties for v2: \[encryption\.key-id\]"):
        stock.sql(f"CREATE TABLE {stock.table()} (id INT) USING iceberg {key}")


def test_an_unknown_key_id_fails_at_the_first_insert(stock: Lake) -> None:
    table = stock.table()
    unknown = tblproperties({**KEY, "encryption.key-id": "no-such-key"})
    stock.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg {unknown}")
    with pytest.raises(Exception, match="no-such-key"):
        insert(stock, table)


@pytest.mark.nightly
def test_a_wrong_data_key_length_locks_the_table(stock: Lake) -> None:
    table = create(stock)
    insert(stock, table)
    wrong = tblproperties({"encryption.data-key-length": "17"})
    stock.sql(f"ALTER TABLE {table} SET {wrong}")
    right = tblproperties({"encryption.data-key-length": "16"})
    for statement in (f"SELECT * FROM {table}", f"ALTER TABLE {table} SET {right}"):
        with pytest.raises(Exception, match="(?i)data key length"):
            stock.sql(statement)
    ours = stock.table(catalog="enc_hive")
    alter = f"ALTER TABLE {ours} SET {right}"
    for statement, hint in ((f"SELECT * FROM {ours}", "ALTER TABLE"), (alter, "repair_table")):
        with pytest.raises(Exception, match=rf"(?s)InvalidConfigurationException: .*{hint}"):
            stock.sql(statement)
    stock.sql(f"CALL enc_hive.system.repair_table(table => '{stock.namespace}.t', confirm => true)")
    stock.sql(f"REFRESH TABLE {table}")
    for readable in (ours, table):
        assert len(stock.sql(f"SELECT * FROM {readable}")) == 1


@pytest.mark.nightly
def test_add_files_adds_plaintext(stock: Lake) -> None:
    source = f"spark_catalog.default.source_{uuid.uuid4().hex[:8]}"
    stock.sql(
        f"CREATE TABLE {source} USING parquet AS SELECT 1L AS id, '{MARKER}' AS note, 'p' AS part"
    )
    table = create(stock)
    stock.sql(f"CALL stock_hive.system.add_files(table => '{table}', source_table => '{source}')")
    assert len(stock.sql(f"SELECT * FROM {table}")) == 1
    assert stock.rows(f"SELECT key_metadata FROM {table}.files") == [(None,)]
    ours = stock.table(catalog="enc_hive")
    with pytest.raises(
        Exception, match=r"PlaintextException: Table .*\.t: file .*\.parquet is not"
    ):
        stock.sql(f"SELECT * FROM {ours}")
    allowing = hive_of(stock).with_options({"encryption.plaintext-files": "allow"})
    assert len(stock.sql(f"SELECT * FROM {allowing.table()}")) == 1
    stock.sql(f"DELETE FROM {ours}")
    assert stock.sql(f"SELECT * FROM {ours}") == []
    stock.sql(f"DROP TABLE {source}")


@pytest.mark.nightly
def test_statistics_are_plaintext(stock: Lake) -> None:
    table = stock.table()
    stock.sql(
        f"CREATE TABLE {table} ({COLUMNS}) USING iceberg PARTITIONED BY (part) {tblproperties(KEY)}"
    )
    stock.sql(f"INSERT INTO {table} VALUES (1, 'x', '{MARKER}')")
    assert not stock.plaintext_files("")
    for procedure in ("compute_table_stats", "compute_partition_stats"):
        stock.sql(f"CALL stock_hive.system.{procedure}(table => '{stock.namespace}.t')")
    assert {magic(path) for path in stock.plaintext_files("")} == {b"PFA1", b"PAR1"}
    assert [path.suffix for path in marker_in(stock.folder)] == [".parquet"]


def test_metadata_tables_tell_the_data_keys(stock: Lake) -> None:
    table = create(stock)
    insert(stock, table)
    assert len(stock.value(f"SELECT key_metadata FROM {table}.files")) > 16
    ours = stock.table(catalog="enc_hive")
    assert stock.value(f"SELECT key_metadata FROM {ours}.files") is None


@pytest.mark.parametrize("depth", [{"structure": True}, {"deep": True}])
def test_our_proof_of_a_table_of_its_catalog(stock: Lake, depth: dict[str, bool]) -> None:
    """It has the keys, and so accuses nobody."""
    table = create(stock)
    insert(stock, table)
    report = verify_table(stock.spark, table, all_snapshots=True, **depth)
    assert report.ok, report


def test_java_expire_snapshots_deletes_nothing(stock: Lake) -> None:
    table = create(stock)
    insert(stock, table, 1)
    stock.sql(f"INSERT OVERWRITE {table} VALUES (9, '{MARKER}', 'p')")
    insert(stock, table, 10)
    before = {path for path in everything_below(stock.folder) if path.suffix == ".parquet"}
    stock.java(table, refresh=False).expireSnapshots().expireOlderThan(2**61).retainLast(1).commit()
    assert before <= everything_below(stock.folder)
    stock.sql(f"REFRESH TABLE {table}")
    assert len(stock.sql(f"SELECT * FROM {table}.snapshots")) == 1


@pytest.mark.nightly
def test_a_purge_without_the_key_drops_the_table(stock: Lake, tmp_path: Path) -> None:
    table = create(stock)
    insert(stock, table)
    files = set(stock.files())
    other = make_keystore(tmp_path, {"k1": 256})  # the same name, another key
    options = stock.world.stock("hive")
    options["encryption.kms.keystore.path"] = str(other.path)
    for key, value in catalog_conf("stock_stranger", STOCK, options).items():
        stock.spark.conf.set(key, value)
    with pytest.raises(Exception, match="does not unwrap"):
        stock.sql(f"DROP TABLE {stock.table('t', 'stock_stranger')} PURGE")
    assert not stock.sql(f"SHOW TABLES IN stock_hive.{stock.namespace}")
    assert files <= set(stock.files())


@pytest.mark.nightly
def test_an_empty_encrypted_table_on_rest_takes_plaintext(
    spark: SparkSession, world: World
) -> None:
    """What our catalog cannot prevent, as it is not asked; it does not read it, and verify_table names the files."""
    rest = Lake(spark, world, "rest", "enc_rest")
    table = rest.create()
    rest.sql(f"INSERT INTO {rest.table('t', 'stock_rest')} VALUES (1, '{MARKER}', 'p')")
    assert rest.magics() == {b"PAR1", b"Obj\x01"}
    rest.sql(f"REFRESH TABLE {table}")
    for statement in (f"SELECT * FROM {table}", f"INSERT INTO {table} VALUES (2, 'x', 'p')"):
        with pytest.raises(Exception, match=r"PlaintextException: Table .*snap-.*is not encrypted"):
            rest.sql(statement)
    report = verify_table(spark, table)
    assert not report.ok
    named = {Path(problem.path).name for problem in report.problems}
    assert {path.name for path in rest.files()} <= named


def test_a_client_without_keys_leaves_a_plaintext_file(spark: SparkSession, world: World) -> None:
    """It cannot commit to an encrypted table that has rows, and its data file stays where it wrote it."""
    rest = Lake(spark, world, "rest", "enc_rest")
    table = rest.insert(rest.create(), [1])
    with pytest.raises(Exception, match="Cannot decrypt manifest list"):
        rest.sql(f"INSERT INTO {rest.table('t', 'stock_rest')} VALUES (2, '{MARKER}', 'p')")
    assert b"PAR1" in rest.magics()
    assert verify_table(spark, table).ok  # no snapshot reaches it


@pytest.mark.nightly
def test_a_path_leads_past_the_catalog(hadoop: Lake, spark: SparkSession) -> None:
    """Iceberg takes a path to a catalog of its own, which has no keys: as for any client without them."""
    table = hadoop.insert(hadoop.create(), [1])
    path = str(hadoop.folder / "t")
    with pytest.raises(Exception, match="Cannot decrypt manifest list"):
        spark.read.format("iceberg").load(path).collect()
    rows = spark.sql(f"SELECT * FROM {table}")
    with pytest.raises(Exception, match="Cannot decrypt manifest list"):
        rows.write.format("iceberg").mode("append").save(path)
    assert b"PAR1" in hadoop.magics()
