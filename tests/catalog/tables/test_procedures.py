"""CALL procedures that work on encrypted tables as on any other."""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from harness.files import MARKER, everything_below
from harness.jars import ROOT
from harness.lake import Lake
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import encryption_keys, verify_table

FUTURE = "older_than => TIMESTAMP '2999-01-01 00:00:00'"


def snapshots(lake: Lake, table: str) -> list[int]:
    return [
        row[0]
        for row in lake.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")
    ]


def test_expire_snapshots_deletes_files(lake: Lake) -> None:
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), [1])
    lake.insert(table, range(2, 6))
    lake.run(f"DELETE FROM {table} WHERE id = 2")
    lake.run(f"INSERT OVERWRITE {table} VALUES (9, '{MARKER}', 'p')")
    before = set(lake.files())
    result = lake.call("expire_snapshots", arguments=f"{FUTURE}, retain_last => 1")[0].asDict()
    assert result["deleted_data_files_count"] == 2
    assert result["deleted_manifest_lists_count"] == 3
    assert result["deleted_manifest_files_count"] >= 2
    gone = before - set(lake.files())
    assert len([path for path in gone if path.suffix == ".parquet"]) == 2
    assert len([path for path in gone if path.name.startswith("snap-")]) == 3
    assert lake.ids(table) == [9]
    assert len(snapshots(lake, table)) == 1
    kinds = [key.kind for key in encryption_keys(lake.spark, table).keys]
    assert kinds == ["master", "kek", "manifest list"], "keys go with their snapshots"


def test_java_expire_snapshots_deletes_files(lake: Lake) -> None:
    """Table.expireSnapshots().commit() in Java leaves all files of an encrypted table behind on stock Iceberg."""
    table = lake.insert(lake.create(), [1])
    lake.run(f"INSERT OVERWRITE {table} VALUES (9, '{MARKER}', 'p')")
    lake.insert(table, [10])  # Java deletes what a snapshot removed once that snapshot expires
    before = [path for path in lake.files() if path.suffix == ".parquet"]
    lake.java(refresh=False).expireSnapshots().expireOlderThan(2**61).retainLast(1).commit()
    lake.assert_encrypted("expireSnapshots")
    after = [path for path in lake.files() if path.suffix == ".parquet"]
    assert (len(before), len(after)) == (3, 2)
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [9, 10]


def test_remove_orphan_files_keeps_what_is_reachable(lake: Lake) -> None:
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), range(5))
    lake.run(f"DELETE FROM {table} WHERE id = 0")
    reachable = everything_below(lake.folder / "t")
    orphan = next(path for path in lake.files() if path.suffix == ".parquet").with_name(
        "orphan.parquet"
    )
    orphan.write_bytes(b"PARE and no more")
    two_days_ago = orphan.stat().st_mtime - 2 * 86400
    for path in [*reachable, orphan]:
        os.utime(path, (two_days_ago, two_days_ago))
    yesterday = lake.value("SELECT cast(now() - INTERVAL 25 HOURS AS STRING)")
    removed = lake.call("remove_orphan_files", arguments=f"older_than => TIMESTAMP '{yesterday}'")
    assert [Path(row.orphan_file_location.removeprefix("file:")).name for row in removed] == [
        "orphan.parquet"
    ]
    assert not orphan.exists()
    assert {p for p in reachable if p.suffix != ".crc"} <= everything_below(lake.folder / "t")
    assert lake.ids(table) == [1, 2, 3, 4]


@pytest.mark.nightly
def test_rewrite_data_files_and_manifests(lake: Lake) -> None:
    table = lake.create(partition="part", write_delete_mode="merge-on-read")
    for i in range(4):
        lake.insert(table, [i, i + 10])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    row = lake.call("rewrite_data_files", arguments="options => map('rewrite-all', 'true')")[0]
    assert row.rewritten_data_files_count == 4
    assert row.added_data_files_count == 1
    lake.insert(table, [20])
    sort = "strategy => 'sort', sort_order => 'id DESC', options => map('rewrite-all', 'true')"
    assert lake.call("rewrite_data_files", arguments=sort)[0].rewritten_data_files_count == 2
    zorder = "strategy => 'sort', sort_order => 'zorder(id, note)', options => map('rewrite-all', 'true')"
    lake.call("rewrite_data_files", arguments=zorder)
    lake.insert(table, [21])
    assert lake.call("rewrite_manifests")[0].rewritten_manifests_count >= 2
    assert lake.ids(table) == [0, 2, 3, 10, 11, 12, 13, 20, 21]


def test_rewrite_position_delete_files(lake: Lake) -> None:
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), range(5))
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    lake.run(f"DELETE FROM {table} WHERE id = 2")
    lake.call("rewrite_position_delete_files", arguments="options => map('rewrite-all', 'true')")
    assert lake.ids(table) == [0, 3, 4]


@pytest.mark.nightly
def test_rollback_set_current_cherrypick_and_ancestors(lake: Lake) -> None:
    table = lake.create()
    for i in (1, 2, 3):
        lake.insert(table, [i])
    one, two, three = snapshots(lake, table)
    lake.call("rollback_to_snapshot", arguments=f"snapshot_id => {two}")
    assert lake.ids(table) == [1, 2]
    lake.call("set_current_snapshot", arguments=f"snapshot_id => {one}")
    assert lake.ids(table) == [1]
    lake.call("cherrypick_snapshot", arguments=f"snapshot_id => {two}")
    assert lake.ids(table) == [1, 2]
    lake.insert(table, [4])
    lake.call(
        "cherrypick_snapshot", arguments=f"snapshot_id => {three}"
    )  # not a fast-forward: a commit of its own
    assert lake.ids(table) == [1, 2, 3, 4]
    assert [row.snapshot_id for row in lake.call("ancestors_of")][-2:] == [two, one]
    latest = "SELECT cast(max(made_current_at) + INTERVAL 1 MILLISECOND AS STRING)"
    stamp = lake.value(f"{latest} FROM {table}.history")
    time.sleep(0.01)
    lake.insert(table, [5])
    lake.call("rollback_to_timestamp", arguments=f"timestamp => TIMESTAMP '{stamp}'")
    assert lake.ids(table) == [1, 2, 3, 4]


@pytest.mark.nightly
def test_create_changelog_view(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1, 2])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    view = lake.call("create_changelog_view")[0][0]
    changes = lake.rows(f"SELECT id, _change_type FROM {view}")
    lake.sql(f"DROP VIEW {view}")  # temporary
    assert changes == [(1, "DELETE"), (1, "INSERT"), (2, "INSERT")]


@pytest.mark.nightly
def test_register_table(lake: Lake) -> None:
    table = lake.insert(lake.create(), [1])
    metadata = lake.value(
        f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
    )
    lake.call("register_table", "again", f"metadata_file => '{metadata}'")
    again = lake.table("again")
    assert lake.ids(again) == [1]
    lake.insert(again, [2])
    assert lake.ids(again) == [1, 2]
    lake.run(f"DROP TABLE {again}")
    assert lake.ids(table) == [1]


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_java_actions(lake: Lake) -> None:
    """Those that no procedure offers."""
    table = lake.create(partition="part", write_delete_mode="merge-on-read")
    for part in ("p", "q"):
        lake.insert(table, [1, 2], part)
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    jvm, session = lake.spark._jvm, lake.spark._jsparkSession
    assert jvm is not None
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(session)
    loaded = lake.java(refresh=False)
    assert len(actions.removeDanglingDeleteFiles(loaded).execute().removedDeleteFiles()) == 0
    assert len(actions.rewriteManifests(loaded).execute().rewrittenManifests()) >= 2
    lake.assert_encrypted("rewriteManifests")
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [2, 2]
    if lake.kind == "hadoop":  # a DROP there deletes the folder
        return
    metadata, io = loaded.operations().refresh().metadataFileLocation(), loaded.io()
    lake.sql(f"DROP TABLE {table}")
    assert lake.files()
    deleted = actions.deleteReachableFiles(metadata).io(io).execute()
    assert (deleted.deletedDataFilesCount(), lake.files()) == (2, [])


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_a_mirrored_folder_is_registered(lake: Lake, tmp_path: Path) -> None:
    """Without rewrite_table_path: the files come back under the paths that they had."""
    if lake.kind == "hadoop":
        pytest.skip("a folder of a Hadoop catalog is a table of it: there is nothing to register")
    table = lake.insert(lake.create(write_delete_mode="merge-on-read"), [1, 2])
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    metadata = lake.value(
        f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
    )
    mirror = shutil.copytree(lake.folder / "t", tmp_path / "mirror")
    lake.sql(f"DROP TABLE {table} PURGE")
    shutil.rmtree(lake.folder / "t", ignore_errors=True)
    shutil.copytree(mirror, lake.folder / "t")
    lake.call("register_table", arguments=f"metadata_file => '{metadata}'")
    assert lake.ids(table) == [2]
    lake.insert(table, [3])
    with verify_table(lake.spark, table, deep=True, all_snapshots=True, strays=True) as report:
        assert report.ok, str(report)


@pytest.mark.since("Iceberg 1.11 has no list of its procedures", iceberg="1.12")
def test_the_documents_list_every_procedure(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    names = set(jvm.org.apache.iceberg.spark.procedures.SparkProcedures.names())
    table = (ROOT / "docs" / "procedures.md").read_text()
    assert names - set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set()


@pytest.mark.catalogs("jdbc")
def test_operations_by_name(lake: Lake) -> None:
    """As Python calls them over Spark Connect."""
    table = lake.create()
    operation = f"CALL {lake.catalog}.system.operation(name => '{{}}', arguments => '{{}}')"

    def answer(called: str, **arguments: Any) -> Any:
        (row,) = lake.sql(operation.format(called, json.dumps(arguments)))
        return json.loads(row.answer)

    assert answer("rotate_kek", table=table, dry_run=True)["committed"] is False
    assert [row["kind"] for row in answer("encryption_keys", table=table)["rows"]] == [
        "master",
        "kek",
    ]
    namespace = f"{lake.catalog}.{lake.namespace}"
    assert table in [one["name"] for one in answer("list_tables", name=namespace)]
    lake.sql(f"DROP TABLE {table}")
    assert table not in [one["name"] for one in answer("list_tables", name=namespace)]
    for name, arguments, *words in (
        ("nosuch", "{}", "no operation 'nosuch'"),
        ("rotate_kek", "{", "arguments of rotate_kek is not a JSON object"),
        ("rotate_kek", "[]", "arguments of rotate_kek is not a JSON object"),
        ("rotate_kek", "{}", "table of rotate_kek is NULL"),
        ("rotate_kek", '{"tabel": "t"}', "rotate_kek has no parameter tabel"),
        ("rotate_kek", '{"table": 5}', "table of rotate_kek is not STRING"),
        ("reencrypt_table", '{"options": {"a": {}}}', "options of reencrypt_table is not MAP"),
        ("purge_plaintext", '{"folders": [{}]}', "folders of purge_plaintext is not ARRAY"),
        ("encrypt_table", '{"max_bytes": 1.5}', "max_bytes of encrypt_table is not BIGINT"),
        ("examine_tables", "{}", "examine_tables cannot be called from SQL"),
        ("verify_catalog", '{"name": "stock_hadoop"}', "belongs to catalog stock_hadoop"),
        ("key_versions_in_use", '{"name": "stock_hadoop"}', "belongs to catalog stock_hadoop"),
        ("rotate_kek", json.dumps({"table": table}), "does not exist"),
    ):
        lake.refused(operation.format(name, arguments), *words)
