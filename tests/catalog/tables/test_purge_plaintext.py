"""purge_plaintext: in the order that can be resumed, and no further than is known and allowed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.files import (
    ENCRYPTED_MAGIC,
    MARKER,
    change,
    changed,
    files_below,
    magic,
    path_of,
    untouched,
)
from harness.lake import Lake
from pyspark.java_gateway import ensure_callback_server_started

from pyspark_iceberg_crypto import (
    ConfigurationError,
    IcebergCryptoError,
    NotSupportedError,
    encrypt_table,
    purge_plaintext,
    verify_table,
)


def old_table(lake: Lake, **properties: str) -> tuple[str, Path]:
    """A table with data files and deletes, encrypted; and the copy of its metadata from before."""
    table = lake.create(
        key=None, format__version="2", write_delete_mode="merge-on-read", **properties
    )
    for ids in ("1, 2", "3, 4"):
        first, second = ids.split(", ")
        lake.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES "
            f"({first}, '{MARKER}-{first}', 'p'), ({second}, '{MARKER}-{second}', 'p')"
        )
    lake.sql(f"DELETE FROM {table} WHERE id = 1")
    return table, path_of(encrypt_table(lake.spark, table, "k1").plaintext_metadata or "")


def stock(lake: Lake, statement: str) -> None:
    """What a user of ours may not change, and nobody where metadata is signed; {t} stands for the table."""
    lake.sql(statement.format(t=lake.table(catalog=f"stock_{lake.kind}")))
    lake.sql(f"REFRESH TABLE {lake.table()}")


def plaintext_below(folder: Path) -> list[Path]:
    return [path for path in files_below(folder) if magic(path) not in ENCRYPTED_MAGIC]


@contextmanager
def failing_deletes(lake: Lake, times: int) -> Iterator[None]:
    """So many of the deletes of the table's files fail."""
    jvm: Any = lake.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    storage.failDeletes(str(lake.folder / "t"), times)
    try:
        yield
    finally:
        storage.heal()


class Undo:
    """Registers the old metadata as the table again, before a call of the storage."""

    def __init__(self, lake: Lake, kept: Path) -> None:
        self.lake, self.kept, self.done = lake, kept, False

    def run(self) -> None:
        self.lake.sql(f"DROP TABLE {self.lake.table()}")
        self.lake.sql(
            f"CALL {self.lake.catalog}.system.register_table("
            f"table => '{self.lake.namespace}.t', metadata_file => '{self.kept}')"
        )
        self.done = True

    class Java:
        implements = ("java.lang.Runnable",)


@contextmanager
def undone_while_verified(lake: Lake, kept: Path) -> Iterator[None]:
    """When the purge opens the first encrypted data file, to verify it."""
    jvm: Any = lake.spark.sparkContext._jvm
    gateway: Any = lake.spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    calls = jvm.io.icebergcrypto.testing.NumberedCalls
    undo = Undo(lake, kept)
    opens = jvm.java.util.Set.of(calls.Kind.OPEN)
    calls.begin(str(lake.folder / "t" / "data"), opens, calls.Fault.OVERTAKEN, 0, undo)
    try:
        yield
    finally:
        calls.end()
    assert undo.done


@contextmanager
def killed_at_delete(lake: Lake, number: int) -> Iterator[None]:
    """After so many deletes of the table's files, its storage ends, as for a process that is killed."""
    jvm: Any = lake.spark.sparkContext._jvm
    calls = jvm.io.icebergcrypto.testing.NumberedCalls
    deletes = jvm.java.util.Set.of(calls.Kind.DELETE)
    calls.begin(str(lake.folder / "t"), deletes, calls.Fault.KILLED, number)
    try:
        yield
    finally:
        calls.end()


@pytest.mark.catalogs("jdbc")
def test_an_encryption_that_is_undone_while_it_is_purged(lake: Lake) -> None:
    """Nothing is deleted; and from the first delete on, the table's property says that it is too late for that."""
    if lake.kind == "hadoop":
        pytest.skip("DROP TABLE deletes the folder: it cannot be undone")
    table = lake.create(key=None, format__version="2")
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}-1', 'p')")
    kept = path_of(encrypt_table(lake.spark, table, "k1").plaintext_metadata or "")
    with (
        untouched(lake.folder / "t" / "data"),
        pytest.raises(IcebergCryptoError, match=r"no longer has encryption\.plaintext-metadata"),
        undone_while_verified(lake, kept),
    ):
        purge_plaintext(lake.spark, table)
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [1] and "encryption.key-id" not in lake.properties(table)
    encrypt_table(lake.spark, table, "k1")
    with killed_at_delete(lake, 0), pytest.raises(Exception, match="killed"):
        purge_plaintext(lake.spark, table)
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.properties(table)["encryption.plaintext-purge"] == "data"


@pytest.mark.slow
@pytest.mark.catalogs("jdbc")
@pytest.mark.nightly
def test_a_purge_that_is_killed_at_any_delete_goes_on(lake: Lake) -> None:
    """Each call deletes one file and dies; what is left is always named by what is left."""
    table, kept = old_table(lake)
    data = lambda: [p for p in plaintext_below(lake.folder / "t") if p.suffix == ".parquet"]  # noqa: E731
    manifests = lambda: [p for p in plaintext_below(lake.folder / "t") if p.suffix == ".avro"]  # noqa: E731
    lists = lambda: [p for p in manifests() if p.name.startswith("snap-")]  # noqa: E731
    before = (len(data()), len(manifests()), len(lists()))
    assert before[0] == 3 and before[1] - before[2] == before[2] == 3
    for _ in range(40):
        left = len(data()) + len(manifests())
        with killed_at_delete(lake, 1):
            try:
                purge_plaintext(lake.spark, table)
                break
            except Exception as error:  # noqa: BLE001 (Java's, of the test)
                assert "killed" in str(error), error
        if left:
            assert len(data()) + len(manifests()) == left - 1
        assert not data() or len(manifests()) == before[1]
        assert len(manifests()) == len(lists()) or len(lists()) == before[2]
        assert kept.exists() or left == 0
        assert "encryption.plaintext-metadata" in lake.properties(table)
    assert purge_ended(lake, table)
    assert lake.ids(table) == [2, 3, 4]


def purge_ended(lake: Lake, table: str) -> bool:
    """No plaintext is left, by bytes, and the table's properties are the user's."""
    lake.sql(f"REFRESH TABLE {table}")
    assert plaintext_below(lake.folder / "t") == []
    assert not any(
        "plaintext" in key or key == "gc.enabled" or "previous-versions" in key
        for key in lake.properties(table)
    )
    with verify_table(lake.spark, table, strays=True) as report:
        assert report.ok, str(report)
    return True


@pytest.mark.nightly
@pytest.mark.catalogs("hadoop")
def test_deletes_that_fail(lake: Lake) -> None:
    """Now and then: they are tried again. Always: it is not finished, says which, and forgets nothing."""
    table = lake.create(key=None, format__version="2")
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}-1', 'p')")
    encrypt_table(lake.spark, table, "k1")
    before = plaintext_below(lake.folder / "t")
    with failing_deletes(lake, 1000), pytest.raises(IcebergCryptoError) as caught:
        purge_plaintext(lake.spark, table)
    text = str(caught.value)
    data = [path for path in before if path.suffix == ".parquet"]
    assert "not finished: 1 of 1 files (data)" in text and "503 Slow Down" in text
    assert all(str(path) in text for path in data)
    assert plaintext_below(lake.folder / "t") == before
    assert "encryption.plaintext-metadata" in lake.properties(table)
    with failing_deletes(lake, 2):
        assert purge_plaintext(lake.spark, table).files > len(before)
    assert purge_ended(lake, table)


@pytest.mark.catalogs("jdbc")
def test_files_that_a_storage_only_says_it_has_deleted(lake: Lake) -> None:
    """One in a thousand is looked at after a delete: the listing shows the others, which are deleted again."""
    table = lake.create(key=None, format__version="2")
    rows = f"id, concat('{MARKER}-', id) AS note, 'p' AS part FROM range(200)"
    lake.sql(f"INSERT INTO {table} SELECT /*+ REPARTITION(20) */ {rows}")
    encrypt_table(lake.spark, table, "k1")
    old = [path for path in plaintext_below(lake.folder / "t") if path.suffix == ".parquet"]
    assert len(old) == 20
    jvm: Any = lake.spark.sparkContext._jvm
    storage = jvm.io.icebergcrypto.testing.NoChmodFileSystem
    storage.keepOnce([old[-1].name])  # not the first of its task, which is looked at
    try:
        assert purge_plaintext(lake.spark, table).committed
        assert storage.keeps() == 0
    finally:
        storage.heal()
    assert purge_ended(lake, table)


@pytest.mark.catalogs("hadoop")
@pytest.mark.nightly
def test_what_named_old_files_is_lost(lake: Lake) -> None:
    """Nobody knows then what it named: nothing is deleted, and forgotten, until the user accepts that."""
    table, _ = old_table(lake)
    folder = lake.folder / "t"
    manifests = [path for path in plaintext_below(folder / "metadata") if path.suffix == ".avro"]
    first = min(manifests, key=lambda path: (path.name.startswith("snap-"), path.stat().st_mtime))
    text = first.read_bytes()
    with changed({first: None}):
        refused_to_end(lake, table, f"{first}: there is no such file", "accept_missing => true")
    with changed({first: text[:-20]}):
        refused_to_end(lake, table, f"{first}: it has {len(text) - 20} bytes")
    with changed({first: None}):
        dry = purge_plaintext(lake.spark, table, dry_run=True)
        assert [str(first) in gap for gap in dry.gaps] == [True]
        with pytest.raises(
            IcebergCryptoError, match=r"not finished.*hold others.*\.parquet"
        ) as caught:
            purge_plaintext(lake.spark, table, accept_missing=True)
        left = [path for path in plaintext_below(folder) if path.suffix == ".parquet"]
        assert len(left) == 1 and str(left[0]) in str(caught.value)  # the data file that it named
        assert set(manifests) - {first} <= set(plaintext_below(folder))  # they say what is left
        assert "encryption.plaintext-metadata" in lake.properties(table)
        change(left[0], None)
        assert purge_plaintext(lake.spark, table, accept_missing=True).committed
        assert purge_ended(lake, table)


@pytest.mark.catalogs("hadoop")
@pytest.mark.nightly
def test_the_copy_of_the_old_metadata_is_forged_or_damaged(lake: Lake) -> None:
    """It cannot have metadata in force deleted; and what it named is left to the user, who accepts that."""
    table = lake.create(key=None, format__version="2")
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}-1', 'p')")
    kept = path_of(encrypt_table(lake.spark, table, "k1").plaintext_metadata or "")
    folder = lake.folder / "t"
    written = set(folder.rglob("*.metadata.json")) - {kept}
    in_force = max(written, key=lambda path: path.stat().st_mtime)
    forged = json.loads(kept.read_bytes())
    targets = [f"{in_force.parent}//{in_force.name}", f"{in_force.parent}/version-hint.text"]
    forged["statistics"] = [
        {
            "snapshot-id": forged["snapshots"][0]["snapshot-id"],
            "statistics-path": targets[0],
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    ]
    forged["partition-statistics"] = [
        {
            "snapshot-id": forged["snapshots"][0]["snapshot-id"],
            "statistics-path": targets[1],
            "file-size-in-bytes": 1,
        }
    ]
    with changed({kept: json.dumps(forged).encode()}):
        doomed = purge_plaintext(lake.spark, table, dry_run=True).paths
        assert doomed and not {path_of(path) for path in doomed} & set(map(Path, targets))
    with changed({kept: b"{"}):
        refused_to_end(lake, table, f"{kept}: it is not table metadata", "accept_missing => true")
        with untouched(folder / "data"), pytest.raises(IcebergCryptoError, match="hold others"):
            purge_plaintext(lake.spark, table, accept_missing=True)
        for path in plaintext_below(folder):
            if path.suffix in (".parquet", ".avro"):
                change(path, None)
        assert purge_plaintext(lake.spark, table, accept_missing=True).committed
        assert not kept.exists() and purge_ended(lake, table)


@pytest.mark.catalogs("hadoop")
@pytest.mark.nightly
def test_old_metadata_that_lists_manifests_itself(lake: Lake) -> None:
    """As clients of format version 1 could: what these list is not known. Nor is what a later version wrote."""
    table, kept = old_table(lake)
    document = json.loads(kept.read_bytes())
    embedded = {"snapshot-id": 7, "timestamp-ms": 1, "manifests": [f"{lake.folder}/t/m.avro"]}
    document["snapshots"].append(embedded)
    later = lake.folder / "t" / "data" / "later.avro"
    with changed({kept: json.dumps(document).encode()}):
        said = (f"{kept}: it lists manifests itself", "accept_missing => true")
        assert "Restore" not in refused_to_end(lake, table, *said)
        later.write_bytes(b"AGS2" + bytes(9))
        with pytest.raises(IcebergCryptoError, match=r"(?s)not be checked.*later\.avro.*look at"):
            purge_plaintext(lake.spark, table, accept_missing=True)
        later.unlink()
        assert purge_plaintext(lake.spark, table, accept_missing=True).committed
        assert purge_ended(lake, table)


@pytest.mark.catalogs("rest")
@pytest.mark.nightly
def test_former_folders_and_files_of_others(lake: Lake, tmp_path: Path) -> None:
    """write.data.path was changed, and add_files took files over: the user says which are the table's."""
    former, others = tmp_path / "former", tmp_path / "others"
    table = lake.create(key=None, format__version="2", write_data_path=str(former))
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}-1', 'p')")
    lake.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.data.path')")
    lake.sql(f"INSERT INTO {table} VALUES (2, '{MARKER}-2', 'p')")
    rows = f"SELECT 3L AS id, '{MARKER}-3' AS note, 'p' AS part"
    lake.spark.sql(rows).coalesce(1).write.parquet(str(others))
    lake.sql(
        f"CALL {lake.catalog}.system.add_files(table => '{lake.namespace}.t', source_table => '`parquet`.`{others}`')"
    )
    encrypt_table(lake.spark, table, "k1")
    [old], [taken] = former.rglob("*.parquet"), others.rglob("*.parquet")
    stray = old.with_name("stray.parquet")
    stray.write_bytes(old.read_bytes())
    dry = purge_plaintext(lake.spark, table, dry_run=True)
    assert {path_of(folder): files for folder, files in dry.outside.items()} == {
        former: 1,
        others: 1,
    }
    assert {path_of(path) for path in dry.outside_paths} == {old, taken}
    assert [path_of(path) for path in dry.left_paths] == [stray]
    with untouched(tmp_path), pytest.raises(NotSupportedError) as caught:
        purge_plaintext(lake.spark, table)
    assert all(
        word in str(caught.value) for word in (str(former), str(others), "keep => array", old.name)
    )
    for whole in ("/", "/tmp", "s3://bucket", "relative/folder", "/a/../b"):
        with pytest.raises(ConfigurationError, match="cannot be a folder of a table"):
            purge_plaintext(lake.spark, table, folders=[whole])
    with pytest.raises(NotSupportedError, match=str(others)):
        purge_plaintext(lake.spark, table, folders=[str(former)])
    own = lake.folder / "t" / "data" / "others.parquet"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(taken.read_bytes())
    for _ in range(2):  # the manifests say, each time, that files are left elsewhere
        with pytest.raises(IcebergCryptoError, match=f"hold others: 1, such as .*{own.name}"):
            purge_plaintext(lake.spark, table, folders=[str(former)], keep=[str(others)])
        dry = purge_plaintext(lake.spark, table, keep=[str(others)], dry_run=True)
        assert {path_of(path) for path in dry.left_paths} == {stray, taken}
    own.unlink()
    later = "'encryption.plaintext-purge'"
    unnamed = taken.with_name("unnamed.parquet")
    unnamed.write_bytes(taken.read_bytes())
    if lake.kind in ("hive", "rest"):
        stock(lake, f"ALTER TABLE {{t}} SET TBLPROPERTIES ({later}='manifest lists')")
        dry = purge_plaintext(lake.spark, table, keep=[str(others)], dry_run=True)
        assert {path_of(path) for path in dry.left_paths} == {stray, taken, unnamed}
        stock(lake, f"ALTER TABLE {{t}} UNSET TBLPROPERTIES ({later})")
    head, *_ = lake.sql(
        f"CALL {lake.catalog}.system.purge_plaintext(table => '{lake.namespace}.t', "
        f"folders => array('{former}'), keep => array('{others}'))"
    )
    assert head.deleted and "1 plaintext files elsewhere are left" in head.message
    assert not old.exists() and taken.exists() and stray.exists()
    assert purge_ended(lake, table) and lake.ids(table) == [1, 2, 3]


def refused_to_end(lake: Lake, table: str, *words: str) -> str:
    with untouched(lake.folder), pytest.raises(IcebergCryptoError) as caught:
        purge_plaintext(lake.spark, table)
    assert all(word in str(caught.value) for word in ("not finished", *words)), caught.value
    return str(caught.value)
