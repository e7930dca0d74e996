"""The control for all other tests: on a plaintext table the harness does find what it looks for."""

import pytest
from harness.files import MARKER, files_below, magic, marker_in, plaintext_problem
from harness.lake import Lake
from harness.world import World
from pyspark.sql import SparkSession

PLAIN = {b"PAR1", b"Obj\x01"}


def stock_table(lake: Lake, properties: str) -> str:
    table = lake.table("t", f"stock_{lake.kind}")
    lake.sql(
        f"CREATE TABLE {table} (id BIGINT, note STRING, part STRING) USING iceberg "
        f"PARTITIONED BY (part) TBLPROPERTIES ({properties})"
    )
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}', '{MARKER}-p')")
    return table


def test_the_search_finds_a_plaintext_table(lake: Lake) -> None:
    stock_table(lake, "'format-version'='3'")
    problems = [plaintext_problem(path) for path in files_below(lake.folder)]
    assert len(problems) >= 3
    assert None not in problems  # data, manifest and manifest list are all seen to be plaintext
    kinds = {path.suffix for path in marker_in(lake.folder)}
    assert kinds == {".parquet", ".avro"}  # rows in the data file, partition values in the manifest
    with pytest.raises(AssertionError, match="starts with b'PAR1'"):
        lake.assert_encrypted()


@pytest.mark.catalogs()
def test_stock_iceberg_ignores_the_key_id(lake: Lake) -> None:
    """The gap that this project closes. When Iceberg closes it, this test says so."""
    if lake.kind == "hive":
        stock_table(lake, "'format-version'='3', 'encryption.key-id'='k1'")
        assert {magic(path) for path in files_below(lake.folder)} == {b"PARE", b"AGS1"}
        return
    stock_table(lake, "'format-version'='3', 'encryption.key-id'='k1'")
    magics = {magic(path) for path in files_below(lake.folder)}
    assert magics == PLAIN, (
        f"stock Iceberg's {lake.kind} catalog wrote {magics}: it no longer ignores encryption.key-id. "
        "Tell the readers of README.md, and look at what EncryptedCatalog still has to add."
    )


def test_ours_writes_pare_where_stock_rest_writes_par1(spark: SparkSession, world: World) -> None:
    rest = Lake(spark, world, "rest", "enc_rest")
    rest.insert(rest.create("ours"), [1])
    assert rest.magics("ours") == {b"PARE", b"AGS1"}
    stock = rest.table("stock", "stock_rest")
    rest.sql(
        f"CREATE TABLE {stock} (id BIGINT) USING iceberg "
        "TBLPROPERTIES ('format-version'='3', 'encryption.key-id'='k1')"
    )
    rest.sql(f"INSERT INTO {stock} VALUES (1)")
    assert rest.magics("stock") == PLAIN
