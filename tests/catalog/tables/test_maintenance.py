"""prune_encryption_keys and reencrypt_table: SQL and Python."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from harness.files import MARKER
from harness.jars import ROOT
from harness.lake import Lake
from harness.sessions import deks_of
from pyspark.java_gateway import ensure_callback_server_started
from twin.java import upsert_as_flink, written

from pyspark_iceberg_crypto import (
    NotSupportedError,
    TableNotFoundError,
    prune_encryption_keys,
    reencrypt_table,
    verify_table,
)

ZONE = "spark.sql.session.timeZone"


def test_keys_are_pruned_from_sql_as_from_python(hadoop: Lake) -> None:
    """KeyPruningTest has what goes."""
    table, plain = hadoop.create(), hadoop.create("plain", key=None)
    report = prune_encryption_keys(hadoop.spark, table)
    assert str(report) == f"· {table}: nothing to remove: 1 key is needed"
    [row] = hadoop.call("prune_encryption_keys")
    assert {"ok": True, **row.asDict()} == report.to_dict()
    with pytest.raises(NotSupportedError, match="is not encrypted"):
        prune_encryption_keys(hadoop.spark, plain)
    with pytest.raises(TableNotFoundError, match="does not exist"):
        prune_encryption_keys(hadoop.spark, hadoop.table("none"))


def keys_in_main(lake: Lake) -> set[bytes]:
    """The id of the key of main's manifest list, and the DEKs of its manifests, data and delete files."""
    key_id: str = lake.java().currentSnapshot().keyId()
    return {key_id.encode()} | deks_of(lake.spark, lake.table())


@pytest.mark.nightly
@pytest.mark.catalogs("jdbc")
def test_no_key_of_before_is_in_use_in_main(lake: Lake) -> None:
    table = lake.create(partition="part", write_delete_mode="merge-on-read")
    for part in ("p", "q"):
        lake.insert(table, [1, 2, 3], part)
    lake.run(f"ALTER TABLE {table} CREATE TAG before")
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    before = keys_in_main(lake)
    files = {path for path in lake.files() if path.suffix in (".parquet", ".puffin")}
    dry = reencrypt_table(lake.spark, table, dry_run=True)
    assert (dry.data_files, dry.delete_files, dry.committed) == (2, 2, False)
    sizes = {path: path.stat().st_size for path in files}
    data = sum(size for path, size in sizes.items() if path.suffix == ".parquet")
    assert data < dry.bytes < sum(sizes.values())
    assert keys_in_main(lake) == before

    [row] = lake.call("reencrypt_table", arguments="options => map('max-files-to-rewrite', '100')")
    assert (row.data_files, row.delete_files, row.left, row.committed) == (2, 2, 0, True)
    assert (row.snapshots, row.refs) == (3, "before")
    assert "main has no older file or manifest" in row.message
    assert not keys_in_main(lake) & before
    assert lake.ids(table) == [2, 2, 3, 3]
    assert lake.ids(table, "VERSION AS OF 'before'") == [1, 1, 2, 2, 3, 3]
    assert files <= set(lake.files())

    lake.run(f"ALTER TABLE {table} DROP TAG before")
    lake.run(row.expire_statement)
    assert not files & set(lake.files())
    assert lake.ids(table) == [2, 2, 3, 3]
    with verify_table(lake.spark, table, all_snapshots=True, strays=True) as report:
        assert report.ok, str(report)


def delete_by_equality(lake: Lake, i: int) -> None:
    upsert_as_flink(lake.spark, lake.table(), "id", [i])


def test_equality_deletes_are_applied(hadoop: Lake) -> None:
    table = hadoop.insert(hadoop.create(columns="id INT, note STRING, part STRING"), [1, 2, 3])
    delete_by_equality(hadoop, 2)
    before = keys_in_main(hadoop)
    done = reencrypt_table(hadoop.spark, table)
    assert (done.data_files, done.delete_files, done.left) == (1, 1, 0)
    assert not keys_in_main(hadoop) & before
    assert hadoop.value(f"SELECT count(*) FROM {table}.delete_files") == 0
    assert hadoop.ids(table) == [1, 3]


def add_snapshot_ahead(lake: Lake, seconds: int) -> None:
    """One more snapshot, with the current one's files, of a writer whose clock is ahead."""
    jvm: Any = lake.spark._jvm
    iceberg, ops = jvm.org.apache.iceberg, lake.java().operations()
    base = ops.current()
    snapshot = json.loads(iceberg.SnapshotParser.toJson(base.currentSnapshot()))
    snapshot |= {
        "snapshot-id": snapshot["snapshot-id"] // 2,
        "parent-snapshot-id": snapshot["snapshot-id"],
        "sequence-number": base.lastSequenceNumber() + 1,
        "timestamp-ms": snapshot["timestamp-ms"] + seconds * 1000,
        "first-row-id": base.nextRowId(),
        "added-rows": 0,
    }
    added = iceberg.SnapshotParser.fromJson(json.dumps(snapshot))
    ops.commit(base, iceberg.TableMetadata.buildFrom(base).addSnapshot(added).build())


def test_the_statement_expires_all_other_snapshots(hadoop: Lake) -> None:
    """In a session of another time zone, too, and those that seem to be newer than the current one."""
    table = hadoop.insert(hadoop.create(), [1])
    add_snapshot_ahead(hadoop, 30)
    with hadoop.configured(ZONE, "America/Los_Angeles"):
        done = reencrypt_table(hadoop.spark, table)
    assert (done.left, done.snapshots) == (0, 2)
    with hadoop.configured(ZONE, "Pacific/Kiritimati"):
        hadoop.run(done.expire_statement or "")
    assert hadoop.value(f"SELECT count(*) FROM {table}.snapshots") == 1
    assert hadoop.ids(table) == [1]


class OnScan:
    """Does something when Iceberg plans the first scan of a table, before that goes on."""

    def __init__(self, lake: Lake, work: Callable[[], Any]) -> None:
        self.table, self.work = lake.table(), work
        gateway, jvm = lake.spark.sparkContext._gateway, lake.spark._jvm
        assert gateway is not None and jvm is not None
        ensure_callback_server_started(gateway)
        event = jvm.py4j.reflection.ReflectionUtil.classForName(
            "org.apache.iceberg.events.ScanEvent"
        )
        jvm.org.apache.iceberg.events.Listeners.register(self, event)  # for ever

    def notify(self, event: Any) -> None:
        if self.work and event.tableName() == self.table:
            work, self.work = self.work, None
            work()

    class Java:
        implements = ("org.apache.iceberg.events.Listener",)


@pytest.mark.nightly
def test_deleted_rows_stay_deleted(hadoop: Lake) -> None:
    """While it runs, a compaction commits that began before an equality delete, and keeps what that deletes."""
    table = hadoop.insert(hadoop.create(columns="id INT, note STRING, part STRING"), [4])
    hadoop.insert(table, [1, 2, 3])
    beside = hadoop.java()
    began = beside.currentSnapshot()
    [old] = began.addedDataFiles(beside.io())
    rows = [{"id": i, "note": f"{MARKER}-{i}"} for i in (1, 2, 3)]
    new = written(hadoop.spark, beside, beside.schema(), rows)
    compaction = beside.newRewrite().validateFromSnapshot(began.snapshotId())
    compaction.deleteFile(old).addFile(new).dataSequenceNumber(began.sequenceNumber())
    delete_by_equality(hadoop, 2)
    assert hadoop.ids(table) == [1, 3, 4]
    commit = OnScan(hadoop, compaction.commit)
    done = reencrypt_table(
        hadoop.spark,
        table,
        options={"partial-progress.enabled": "true", "max-file-group-size-bytes": "1"},
    )
    assert commit.work is None
    hadoop.sql(f"REFRESH TABLE {table}")
    assert hadoop.ids(table) == [1, 3, 4]
    assert done.left == 2 and "call reencrypt_table again" in done.message  # and its manifest
    again = reencrypt_table(hadoop.spark, table)
    assert again.left == 0
    assert hadoop.value(f"SELECT count(*) FROM {table}.delete_files") == 0
    assert hadoop.ids(table) == [1, 3, 4]


def test_what_cannot_be_reencrypted(hadoop: Lake) -> None:
    table = hadoop.create()
    assert reencrypt_table(hadoop.spark, table).message == "it has no files; nothing was changed"
    hadoop.run(f"ALTER TABLE {table} CREATE BRANCH audit")
    hadoop.insert(f"{table}.branch_audit", [1])  # main stays without a snapshot
    empty = reencrypt_table(hadoop.spark, table)
    assert (empty.committed, empty.refs, empty.expire_statement) == (False, "audit", None)
    hadoop.insert(table, [1])
    hadoop.refused(
        f"CALL {hadoop.catalog}.system.reencrypt_table(table => '{hadoop.namespace}.t',"
        " options => map('rewrite-all', 'false'))",
        table,
        "rewrite-all",
    )
    plain = hadoop.create("plain", key=None)
    with pytest.raises(NotSupportedError, match="is not encrypted"):
        reencrypt_table(hadoop.spark, plain)
    with pytest.raises(NotSupportedError, match="not a table with files of its own"):
        reencrypt_table(hadoop.spark, f"{table}.files")


@pytest.mark.catalogs("jdbc")
@pytest.mark.nightly
def test_the_runbook(lake: Lake) -> None:
    """The Python and the SQL of docs/compromise.md, in order."""
    table = lake.insert(lake.create(), [1, 2])
    lake.run(f"ALTER TABLE {table} CREATE BRANCH audit")
    lake.run(f"ALTER TABLE {table} CREATE TAG first")
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    files, before = set(lake.files()), keys_in_main(lake)
    keks = {row.key_id for row in lake.call("encryption_keys") if row.kind == "kek"}
    assert keks
    names: dict[str, Any] = {"spark": lake.spark}
    text = (ROOT / "docs" / "compromise.md").read_text()
    for language, code in re.findall(r"```(python|sql)\n(.*?)```", text, re.DOTALL):
        for old, new in (
            ("CALL lake.", f"CALL {lake.catalog}."),
            ("lake.db", f"{lake.catalog}.{lake.namespace}"),
            ("'db.", f"'{lake.namespace}."),
            ("sales-2", "k1" if lake.kind == "hive" else "k2"),
            ("sales-3", "k1" if lake.kind == "hive" else "k-256"),
        ):
            code = code.replace(old, new)
        if language == "python":
            exec(code, names)
            continue
        for statement in filter(None, map(str.strip, code.split(";"))):
            lake.run(statement)
    leaked = text.partition("## The master key leaked")[2].partition("\n## ")[0]
    told = re.findall(r"(?<=CALL lake\.system\.)\w+", leaked)  # the first wraps the old KEKs, too
    assert told == ["rotate_master_key", "rotate_kek", "reencrypt_table", "rotate_master_key"]
    set_now = {row.key for row in lake.sql(f"SHOW TBLPROPERTIES {table}")}
    assert not {one for one in set_now if "delete-after" in one or "previous-versions" in one}
    now = {row.key_id for row in lake.call("encryption_keys")}
    assert lake.kind != "hive" or not keks & now, "there it locks out who has an old KEK"
    assert names["report"].ok and not names["report"].left
    assert not set(names["done"].refs.split(", ")) & {"", "main"}
    assert not files & set(lake.files())
    assert not keys_in_main(lake) & before
    assert lake.ids(table) == [2]
