"""rewrite_table_path: an encrypted table is copied to another location, and is all there without the first one."""

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.files import (
    ENCRYPTED_MAGIC,
    MARKER,
    changed,
    everything_below,
    files_below,
    magic,
    path_of,
)
from harness.jars import ROOT
from harness.keystore import make_keystore
from harness.lake import Lake
from harness.world import World
from pyspark.sql import Row, SparkSession

from pyspark_iceberg_crypto import create_value_key, verify_table


def location(lake: Lake, table: str) -> str:
    rows = lake.sql(f"DESCRIBE TABLE EXTENDED {table}")
    return str(next(row.data_type for row in rows if row.col_name == "Location"))


def documented(lake: Lake, number: int, table: str = "t", **values: str) -> list[Row]:
    """Runs a statement of docs/disaster-recovery.md, with other values in it."""
    text = (ROOT / "docs" / "disaster-recovery.md").read_text()
    statements = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    assert len(statements) == 4
    statement = re.sub(r"CALL \w+\.", f"CALL {lake.catalog}.", statements[number])
    for name, value in {"table": f"{lake.namespace}.{table}", **values}.items():
        statement, found = re.subn(rf"({name} =>) '[^']*'", rf"\1 '{value}'", statement)
        assert found == 1, name
    return lake.sql(statement)


def prefixes(lake: Lake) -> dict[str, str]:
    source = location(lake, lake.table())
    return {"source_prefix": source, "target_prefix": f"{source.rpartition('/')[0]}/copy"}


def pairs(file_list: str) -> list[tuple[Path, Path]]:
    lines = [line.split(",") for line in path_of(file_list).read_text().splitlines()]
    return [(path_of(source), path_of(target)) for source, target in lines]


def copy(file_list: str) -> str:
    """Copies what the list says; gives the metadata file, which is its last line."""
    for source, target in pairs(file_list):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return path_of(file_list).read_text().splitlines()[-1].split(",")[1]


def register(lake: Lake, name: str, metadata: str) -> str:
    """In a Hadoop catalog the folder of the copy is the table."""
    if lake.kind != "hadoop":
        documented(lake, 1, name, metadata_file=metadata)
    return lake.table(name)


def replace(lake: Lake, name: str, metadata: str) -> str:
    """Registers it over a table, in Java."""
    jvm = lake.spark._jvm
    assert jvm is not None
    load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{lake.namespace}.{name}")
    load(lake.spark._jsparkSession, lake.catalog).registerTable(identifier, metadata, True)
    return lake.table(name)


@contextmanager
def moved_away(folder: Path, to: Path) -> Iterator[None]:
    shutil.move(folder, to)
    try:
        yield
    finally:
        shutil.move(to, folder)


def history(lake: Lake, table: str) -> dict[str, list[int]]:
    """The rows of each snapshot, branch and tag."""
    snapshots = [row[0] for row in lake.sql(f"SELECT snapshot_id FROM {table}.snapshots")]
    refs = [f"'{row[0]}'" for row in lake.sql(f"SELECT name FROM {table}.refs")]
    return {f"{at}": lake.ids(table, f"VERSION AS OF {at}") for at in (*snapshots, *refs)}


def busy(lake: Lake) -> str:
    """A partitioned table with deletion vectors, a branch, a tag and rewritten manifests."""
    table = lake.insert(lake.create(partition="part", write_delete_mode="merge-on-read"), [1, 2, 3])
    lake.insert(table, [4, 5, 6], "q")
    lake.sql(f"ALTER TABLE {table} CREATE TAG first")
    lake.sql(f"ALTER TABLE {table} CREATE BRANCH b")
    lake.run(f"DELETE FROM {table} WHERE id IN (2, 5)")
    lake.run(f"DELETE FROM {table}.branch_b WHERE id = 1")
    lake.call("rewrite_manifests")
    return table


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_value_keys_are_copied(lake: Lake, tmp_path: Path) -> None:
    """Their table has no snapshots."""
    keyed = lake.with_options({"encryption.value-key-table": f"{lake.namespace}.keys"})
    create_value_key(keyed.spark, keyed.catalog, "k", "k1")
    source = location(keyed, keyed.table("keys"))
    to = {"source_prefix": source, "target_prefix": f"{source.rpartition('/')[0]}/copied"}
    done = documented(keyed, 0, "keys", **to, staging_location=f"{tmp_path}/staging")[0]
    copied = register(keyed, "copied", copy(done.file_list_location))
    keys, again = (
        [row for row in keyed.sql(f"SHOW TBLPROPERTIES {table}") if "value-key" in row.key]
        for table in (keyed.table("keys"), copied)
    )
    assert keys == again != []


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_a_table_is_copied(lake: Lake, tmp_path: Path) -> None:
    table = busy(lake)
    then = history(lake, table)
    first = documented(lake, 0, **prefixes(lake), staging_location=f"{tmp_path}/first")[0]
    assert first.rewritten_delete_file_paths_count > 0
    assert {magic(path) for path in files_below(tmp_path / "first")} - {b"AGS1"} == {
        path_of(first.file_list_location).read_bytes()[:4]
    }
    metadata = copy(first.file_list_location)
    assert metadata.endswith(f"/{first.latest_version}")
    with moved_away(lake.folder / "t", tmp_path / "away"):
        copied = register(lake, "copy", metadata)
        assert history(lake, copied) == then
        assert lake.ids(copied) == [1, 3, 4, 6]
        assert lake.value(f"SELECT count(*) FROM {copied}.metadata_log_entries") == 1
        if lake.kind == "hive":
            assert lake.ids(lake.table("copy", "stock_hive")) == [1, 3, 4, 6]
        checked = documented(lake, 2, "copy")
        assert checked
        assert all(row.problem is None for row in checked)

    # what came since is copied on top; who reads the first copy is not disturbed
    lake.insert(table, [7], "q")
    lake.run(f"DELETE FROM {table} WHERE id = 4")
    second = documented(
        lake,
        3,
        **prefixes(lake),
        start_version=first.latest_version,
        staging_location=f"{tmp_path}/second",
    )[0]
    data = [source for source, _ in pairs(second.file_list_location) if "/data/" in str(source)]
    assert len([path for path in data if path.suffix == ".parquet"]) == 1
    newer = copy(second.file_list_location)
    with moved_away(lake.folder / "t", tmp_path / "away"):
        if lake.kind != "hadoop":
            assert lake.ids(copied) == [1, 3, 4, 6]
        if lake.kind == "rest":
            again = replace(lake, "copy", newer)
        else:
            if lake.kind != "hadoop":
                lake.sql(f"DROP TABLE {copied}")
            again = register(lake, "copy" if lake.kind == "hadoop" else "again", newer)
        lake.sql(f"REFRESH TABLE {again}")
        assert lake.ids(again) == [1, 3, 6, 7]
        now = history(lake, again)
        assert {at: now[at] for at in then} == then | {"'main'": [1, 3, 6, 7]}
        lake.sql(f"INSERT INTO {again} VALUES (8, '{MARKER}', 'p')")
        lake.sql(f"DELETE FROM {again} WHERE id = 6")
        assert lake.ids(again) == [1, 3, 7, 8]
        assert {magic(path) for path in files_below(lake.folder / "copy")} <= set(ENCRYPTED_MAGIC)
        with verify_table(lake.spark, again, deep=True, all_snapshots=True) as report:
            assert report.ok, str(report)
    assert lake.ids(table) == [1, 3, 6, 7]


@pytest.mark.nightly
def test_a_copy_without_a_mac_is_signed(spark: SparkSession, world: World, tmp_path: Path) -> None:
    """From REST into JDBC, as docs/disaster-recovery.md says."""
    rest, jdbc = (Lake(spark, world, kind, f"enc_{kind}") for kind in ("rest", "jdbc"))
    rest.insert(rest.create(), [1])
    prepared = documented(rest, 0, **prefixes(rest), staging_location=f"{tmp_path}/s")[0]
    metadata = copy(prepared.file_list_location)
    register_it = f"system.register_table('{jdbc.namespace}.t', '{metadata}')"
    jdbc.refused(f"CALL {jdbc.catalog}.{register_it}", "it has no encryption.metadata-mac")
    off = jdbc.with_options({"encryption.metadata-authentication": "off"})
    off.sql(f"CREATE NAMESPACE IF NOT EXISTS {off.catalog}.{off.namespace}")
    with jdbc.seen_by(off.catalog):
        off.sql(f"CALL {off.catalog}.{register_it}")
        assert off.ids(off.table()) == [1]
    sha256 = hashlib.sha256(path_of(metadata).read_bytes()).hexdigest()
    jdbc.sql(
        f"CALL {jdbc.catalog}.system.authenticate_metadata(table => '{jdbc.namespace}.t', "
        f"metadata_file => '{metadata}', metadata_sha256 => '{sha256}')"
    )
    jdbc.sql(f"INSERT INTO {jdbc.table()} VALUES (2, '{MARKER}', 'p')")
    assert jdbc.ids(jdbc.table()) == [1, 2]


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_what_is_refused(lake: Lake, tmp_path: Path) -> None:
    table = lake.insert(lake.create(), [1])
    right = {"table": f"{lake.namespace}.t", **prefixes(lake), "staging_location": f"{tmp_path}/s"}
    source = right["source_prefix"]
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file-list").touch()
    for wrong, *words in (
        ({"source_prefix": "file:/nowhere"}, source, "spelled as they are"),
        ({"source_prefix": f"{source}2"}, source),
        ({"source_prefix": ""}, "is empty"),
        ({"target_prefix": f"{source}/"}, "the same as source_prefix"),
        ({"target_prefix": f"{source}/copy"}, "in the table's own location"),
        ({"start_version": "v99.metadata.json"}, "v99.metadata.json is not in its metadata log"),
        ({"end_version": "v99.metadata.json"}, "only the newest version"),
        ({"staging_location": f"{tmp_path}/used"}, "another run"),
    ):
        every = ", ".join(f"{name} => '{value}'" for name, value in {**right, **wrong}.items())
        call = f"CALL {lake.catalog}.system.rewrite_table_path({every})"
        lake.refused(call, table, "nothing was written", *words)
    log = f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp LIMIT 1"
    older = path_of(lake.value(log))
    with changed({older: None}):
        gone = call.replace("staging_location => ", "start_version => ").replace(
            f"{tmp_path}/used", older.name
        )
        lake.refused(gone, table, "nothing was written", older.name, "cannot be read")
    path = f"CALL {lake.catalog}.system.rewrite_table_path('{source}', '{source}', '/copy')"
    lake.refused(path, source, "takes no paths")

    call = f"{call.rpartition(', staging')[0]}, staging_location => '{tmp_path}/s'"
    not_listed = lake.sql(f"{call}, create_file_list => false)")[0]
    assert not_listed.file_list_location == "N/A"
    staged = {path.name for path in everything_below(tmp_path / "s")}
    assert not_listed.latest_version in staged
    assert "file-list" not in staged
    shutil.rmtree(tmp_path / "s")

    # a data file elsewhere: no property says so any more, but the manifest does
    lake.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.data.path'='{tmp_path}/other')")
    lake.refused(f"{call})", "write.data.path", "is not below source_prefix")
    lake.sql(f"INSERT INTO {table} VALUES (2, '{MARKER}', 'p')")
    lake.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.data.path')")
    lake.refused(f"{call})", table, f"{tmp_path}/other/", "is not below source_prefix")
    assert everything_below(tmp_path / "s") == set()


@pytest.mark.catalogs("rest")
def test_without_the_key_or_with_plaintext(lake: Lake, tmp_path: Path) -> None:
    lake.insert(lake.create(), [1])
    other = make_keystore(tmp_path)
    lost = lake.with_options(
        {
            "encryption.kms.keystore.path": str(other.path),
            "encryption.kms.keystore.password-file": str(other.password_file),
        }
    )
    given = {**prefixes(lake), "staging_location": f"{tmp_path}/s"}
    every = ", ".join(f"{name} => '{value}'" for name, value in given.items())
    call = f"system.rewrite_table_path(table => '{lake.namespace}.t', {every})"
    with lake.seen_by(lost.catalog):
        lake.refused(f"CALL {lost.catalog}.{call}", lost.table(), "'k1'")
    if lake.kind == "rest":  # elsewhere such a table is refused when it is loaded
        empty = lake.create("empty")
        lake.sql(f"INSERT INTO {lake.table('empty', 'stock_rest')} VALUES (1, 'x', 'p')")
        plain = call.replace(".t'", ".empty'").replace("/t'", "/empty'")
        with pytest.raises(Exception, match="(?s)has no key: it is plaintext.*hint") as caught:
            lake.sql(f"CALL {lake.catalog}.{plain}")
        assert empty in str(caught.value)
    assert everything_below(tmp_path / "s") == set()


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_a_failed_run_deletes_what_it_wrote(lake: Lake, tmp_path: Path) -> None:
    table = busy(lake)
    vectors = [path for path in lake.files() if path.suffix == ".puffin"]
    assert len(vectors) > 1
    (tmp_path / "s").mkdir()
    theirs = tmp_path / "s" / "theirs"
    theirs.touch()
    for vector in vectors:
        with changed({vector: None}), pytest.raises(Exception, match="was deleted") as caught:
            documented(lake, 0, **prefixes(lake), staging_location=f"{tmp_path}/s")
        assert vector.name in str(caught.value)
        assert everything_below(tmp_path / "s") == {theirs}
    assert lake.ids(table) == [1, 3, 4, 6]
