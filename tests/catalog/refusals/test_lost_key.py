"""A table whose key is lost: what fails leaves no file behind, and the table can be got rid of."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.files import MARKER, everything_below, untouched
from harness.keystore import make_keystore
from harness.lake import FILES_ON_DRIVER, Lake
from harness.world import World
from pyspark.sql import SparkSession

pytestmark = pytest.mark.catalogs("hadoop")


@contextmanager
def without_key(lake: Lake, folder: Path, has: str = "k1") -> Iterator[Lake]:
    """A catalog over the same tables, whose keystore has another key: of the same name, or of another."""
    other = make_keystore(folder, {has: 256})
    stranger = lake.with_options(
        {"encryption.kms.keystore.path": str(other.path), "cache-enabled": "false"}
    )
    with lake.seen_by(stranger.catalog):
        yield stranger


def call(lake: Lake, more: str = "") -> str:
    return f"CALL {lake.catalog}.system.purge_without_key(table => '{lake.table()}'{more})"


@pytest.mark.catalogs("jdbc")
def test_purge_takes_the_key_or_force(lake: Lake, tmp_path: Path) -> None:
    lake.insert(lake.create(write_delete_mode="merge-on-read"), [1, 2])
    lake.run(f"DELETE FROM {lake.table()} WHERE id = 1")
    neighbour = lake.insert(lake.create("neighbour"), [3])
    lake.refused(call(lake), lake.table().split(".", 1)[1], "its key is available", "PURGE")
    kept = everything_below(lake.folder / "neighbour")
    own = [path for path in everything_below(lake.folder / "t") if path.suffix != ".crc"]
    with without_key(lake, tmp_path) as stranger:
        table = stranger.table()
        stranger.refused(
            f"DROP TABLE {table} PURGE",
            f"{stranger.namespace}.t",
            "'k1'",
            "Nothing was dropped",
            call(stranger),
        )
        assert everything_below(lake.folder / "t") >= set(own)
        stranger.refused(call(stranger), "nothing was dropped", "'k1'", "confirm => true")
        [row] = stranger.sql(call(stranger, ", confirm => true"))
        assert row.deleted_files_count == len(own)
        assert row.deleted_bytes > 0
    assert lake.tables() == {"neighbour"}
    assert not everything_below(lake.folder / "t")
    assert everything_below(lake.folder / "neighbour") == kept
    assert lake.ids(neighbour) == [3]


@pytest.mark.nightly
def test_many_manifest_lists_are_read_by_a_job(lake: Lake) -> None:
    """A purge is refused if one of them cannot be read; few are read on the driver."""
    table = lake.insert(lake.create(), [1])
    lake.insert(table, [2])
    jobs = lake.spark.sparkContext.statusTracker()
    lists = [path for path in lake.files() if path.name.startswith("snap-")]
    away = lists[0].with_name("away")
    lists[0].rename(away)
    for few, count in (("50", 0), ("0", 1)):
        group = f"{lake.namespace}-{few}"
        lake.spark.sparkContext.setJobGroup(group, "a purge")
        try:
            with lake.configured(FILES_ON_DRIVER, few):
                lake.refused(
                    f"DROP TABLE {table} PURGE",
                    f"{lake.namespace}.t: manifest list",
                    lists[0].name,
                    "Nothing was dropped",
                )
        finally:
            lake.spark.sparkContext._jsc.clearJobGroup()
        assert len(jobs.getJobIdsForGroup(group)) == count
    away.rename(lists[0])
    assert lake.ids(table) == [1, 2]
    with lake.configured(FILES_ON_DRIVER, "0"):
        lake.sql(f"DROP TABLE {table} PURGE")
    assert not everything_below(lake.folder / "t")


@pytest.mark.nightly
def test_drop_takes_no_key(lake: Lake, tmp_path: Path) -> None:
    lake.insert(lake.create(), [1])
    files = lake.files()
    with without_key(lake, tmp_path) as stranger:
        stranger.sql(f"DROP TABLE {stranger.table()}")
    assert not lake.tables()
    # a Hadoop table is its folder, which goes with it
    assert lake.files() == ([] if lake.kind == "hadoop" else files)


@pytest.mark.nightly
def test_the_session_catalog_has_the_procedure(hive: Lake) -> None:
    hive.insert(hive.create(), [1])
    statement = f"CALL spark_catalog.system.purge_without_key('{hive.namespace}.t')"
    hive.refused(statement, f"{hive.namespace}.t", "its key is available")
    other = f"CALL spark_catalog.system.purge_without_key('{hive.table()}')"
    hive.refused(other, "belongs to catalog enc_hive")


def test_a_write_that_fails_leaves_no_file(lake: Lake, tmp_path: Path) -> None:
    """Spark writes data files first, and asks for the key when it commits."""
    empty, full = lake.create("empty"), lake.create("full")
    lake.insert(full, [1])
    row = f"SELECT 9L AS id, '{MARKER}' AS note, 'p' AS part"
    with without_key(lake, tmp_path, "other") as stranger:
        for name in ("empty", "full"):
            table = stranger.table(name)
            for statement in (
                f"INSERT INTO {table} {row}",
                f"INSERT OVERWRITE {table} {row}",
                f"CREATE OR REPLACE TABLE {table} USING iceberg AS {row}",
            ):
                stranger.refused(statement, f"{lake.namespace}.{name}", "'k1'")
    assert (lake.ids(empty), lake.ids(full)) == ([], [1])


def test_a_query_that_fails_leaves_no_file(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    row = "SELECT /*+ REPARTITION(2) */ id, if(id = 19, raise_error('stop'), 'x') AS note, 'p' AS part FROM range(20)"
    new = lake.table("new")
    for statement in (
        f"INSERT INTO {table} {row}",
        f"CREATE TABLE {new} USING iceberg TBLPROPERTIES ('encryption.key-id'='k1') AS {row}",
        f"CREATE OR REPLACE TABLE {table} USING iceberg AS {row}",
    ):
        with (
            untouched(lake.folder),
            pytest.raises(Exception, match=r"(\[USER_RAISED_EXCEPTION\]|RuntimeException:) stop"),
        ):
            lake.sql(statement)
    assert lake.ids(table) == [1]
    assert lake.tables() == {"t"}


@pytest.mark.parametrize("kind", [pytest.param("rest", marks=pytest.mark.nightly), "hadoop"])
def test_a_key_id_that_goes_while_a_write_runs(
    kind: str, spark: SparkSession, world: World
) -> None:
    """The commit is refused, and what was written is deleted. Hive refuses the stock client's ALTER."""
    lake = Lake(spark, world, kind, f"enc_{kind}")
    table = lake.create()
    lake.sql(f"SELECT * FROM {table}")  # from here on it is in Spark's cache
    stock = lake.table("t", f"stock_{kind}")
    lake.sql(f"ALTER TABLE {stock} UNSET TBLPROPERTIES ('encryption.key-id')")
    lake.refused(f"INSERT INTO {table} VALUES (1, '{MARKER}', 'p')", "encryption.key-id is gone")
