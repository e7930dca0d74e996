"""Encrypted tables written without Spark: what is on disk, what others read, conflicts, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from doubles.rest_catalog import RestCatalogDouble
from harness.encrypted_tables import EQUALITY, OwnKms, Writer
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.kms import CachedKms
from pyspark_iceberg_crypto.reader import (
    _commit,
    _keys,
    _load,
    create_table,
    open_table,
    verify_table,
)
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader._settings import Settings
from reader.golden import Golden, ViewFs, shared_client

ID = NestedField(1, "id", LongType(), required=False)
NOTE = NestedField(2, "note", StringType(), required=False)
SCHEMA = Schema(ID, NOTE)
BY_NOTE = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "note"))
MARKER = "MARKER-that-is-nowhere"


def rows(*ids: int, note: str = MARKER) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)})


def ids(table: Any) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def files(folder: Path) -> dict[Path, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".db")
    return {path: path.read_bytes() for path in found}


@dataclass
class Place:
    """A catalog of one table, `db.t`."""

    folder: Path
    catalog: Any
    kms: Any

    def create(self, **options: Any) -> Any:
        return create_table(self.catalog, "db.t", SCHEMA, key_id="k1", kms=self.kms, **options)

    def open(self, **options: Any) -> Any:
        return open_table(self.catalog, "db.t", kms=self.kms, **options)

    def prove(self, **options: Any) -> None:
        report = verify_table(
            self.catalog, "db.t", kms=self.kms, deep=True, all_snapshots=True, **options
        )
        assert report.to_dict()["problems"] == []
        assert report.ok


def sql(folder: Path, kms: Any) -> Place:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/c.db", warehouse=folder.as_uri())
    catalog.create_namespace("db")
    return Place(folder, catalog, kms)


@pytest.fixture(params=["sql", "hadoop"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sql":
        return sql(tmp_path, shared_client())
    return Place(tmp_path, str(tmp_path), shared_client())


@pytest.fixture
def one(tmp_path: Path) -> Place:
    return sql(tmp_path, OwnKms())


def document(table: Table) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        Path(table.metadata_location.removeprefix("file://")).read_text()
    )
    return told


# ---- what works


@pytest.mark.parametrize(
    ("place", "length"), [("sql", 16), ("sql", 24), ("hadoop", 32)], indirect=["place"]
)
def test_rows_that_are_written_are_read_and_no_byte_is_plaintext(place: Place, length: int) -> None:
    told = {"encryption.data-key-length": str(length)}
    table = place.create(partition_spec=BY_NOTE if length == 24 else None, table_properties=told)
    table.append(pa.concat_tables([rows(1, 2, 3), rows(4, note="other")]))
    table.overwrite(rows(20, 21), "id = 2")
    table.delete("id = 3")
    table.delete(f"note = 'other' or id = 21 or note = '{MARKER}-no'")
    assert ids(table) == ids(place.open()) == ids(table.refresh()) == [1, 20]
    place.prove()
    written = files(place.folder)
    magics = {data[:4] for path, data in written.items() if path.suffix in (".parquet", ".avro")}
    assert magics == {b"PARE", b"AGS1"}
    assert not [path for path, data in written.items() if MARKER.encode() in data]
    keys = [key(file).key for file in data_files(table)]
    assert {len(one) for one in keys} == {length} and len(set(keys)) == len(keys)
    assert table.metadata.current_snapshot().summary["total-records"] == "2"


def data_files(table: Any) -> list[Any]:
    manifests = table.current_snapshot().manifests(table.io)
    entries = (one for each in manifests for one in each.fetch_manifest_entry(table.io))
    return [entry.data_file for entry in entries]


def key(file: Any) -> KeyMetadata:
    return KeyMetadata.decode(file.listed.key_metadata, None)  # type: ignore[arg-type]


def test_rows_keep_their_ids_when_their_file_is_written_again(one: Place) -> None:
    table = one.create()
    table.append(rows(1, 2))
    table.append(rows(3, 4, 5))
    table.delete("id = 4")
    table.delete("id = 5")

    def lineage() -> dict[int, tuple[int, int]]:
        found = {}
        for file in data_files(table):
            properties = pe.create_decryption_properties(
                key(file).key, aad_prefix=key(file).aad_prefix
            )
            path = file.file_path.removeprefix("file://")
            for at, row in enumerate(
                pq.read_table(path, decryption_properties=properties).to_pylist()
            ):
                inherited = (file.first_row_id + at, file.sequence_number)
                told = (row.get("_row_id"), row.get("_last_updated_sequence_number"))
                found[row["id"]] = tuple(
                    has if has is not None else other
                    for has, other in zip(told, inherited, strict=True)
                )
        return found

    assert lineage() == {1: (0, 1), 2: (1, 1), 3: (2, 2)}
    told = document(table)
    rows_added = [(one["first-row-id"], one["added-rows"]) for one in told["snapshots"]]
    assert rows_added == [(0, 2), (2, 3), (5, 2), (7, 1)]
    assert told["next-row-id"] == 8
    assert [one["sequence-number"] for one in told["snapshots"]] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["positions", "equality"])
def test_rows_that_were_deleted_before_stay_deleted(tmp_path: Path, kind: str) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    data = writer.append([{"id": number, "note": "n"} for number in (1, 2, 3, 4)])
    if kind == "positions":
        writer.commit(writer.positions(data, [1]))
    else:
        writer.append([{"id": 2}], content=EQUALITY, schema=Schema(ID), equality=[1])
    table = open_table(tmp_path / "t", kms=writer.kms)
    table.append(rows(5, 6))
    table.delete("id = 3")
    assert ids(table) == ids(open_table(tmp_path / "t", kms=writer.kms)) == [1, 4, 5, 6]


def test_a_golden_table_of_java_is_written_on(tmp_path: Path) -> None:
    golden = Golden.unpacked("1cfc043", "jdbc", tmp_path)
    properties = {"py-io-impl": f"{__name__}.Written", "golden.folder": str(tmp_path)}
    catalog = SqlCatalog(golden.name, uri=f"sqlite:///{tmp_path}/jdbc.db", **properties)
    table: Any = open_table(catalog, "db.t", kms=golden.client)
    before = table.scan().to_arrow().sort_by("id").to_pylist()
    some = pa.table({"id": pa.array([90, 91], pa.int64()), "note": ["x", "y"], "part": ["p", "q"]})
    with pytest.raises(errors.NotSupportedError, match=r"db\.t is .*it has write\.format\.default"):
        table.append(some)
    # as Spark would set it
    change = {"action": "set-properties", "updates": {"write.format.default": "parquet"}}
    table._become(
        table._tables.source.committer("t", table.io.settings).prepare(table, [change], ())()
    )
    table.append(some)
    gone = before[0]["id"]
    with pytest.warns(UserWarning, match="copy-on-write"):
        table.delete(f"id = {gone} or id = 90")
    after = open_table(catalog, "db.t", kms=golden.client).scan().to_arrow().sort_by("id")
    added = {"id": 91, "note": "y", "part": "q", "more": None}
    assert after.to_pylist() == [*before[1:], added]
    Place(tmp_path, catalog, golden.client).prove()
    for name in ("first", "work"):
        assert table.scan().use_ref(name).to_arrow().num_rows


class Written(ViewFs):
    """It also writes."""

    def new_output(self, location: str) -> PyArrowFile:
        made = super().new_output(self.new_input(location).location)
        made._location = location
        return made


def test_metadata_is_compressed_and_named_as_the_table_has_it(place: Place) -> None:
    told = {
        "write.metadata.compression-codec": "gzip",
        "write.metadata.previous-versions-max": "2",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    table = place.create(table_properties=told)
    for number in range(4):
        table.append(rows(number))
    metadata = [path for path in files(place.folder) if path.name.endswith(".gz.metadata.json")]
    assert len(metadata) == 3
    assert len(table.metadata.metadata_log) == 2
    with pytest.raises(TableAlreadyExistsError):  # though its first version is gone
        place.create()
    assert ids(place.open()) == [0, 1, 2, 3]


def test_a_batch_reader_and_merged_manifests(one: Place) -> None:
    told = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
    table = one.create(table_properties=told)
    for number in range(3):
        table.append(rows(number).to_reader())
    assert len(table.current_snapshot().manifests(table.io)) == 1
    assert ids(one.open()) == [0, 1, 2]
    # room is left for the ids of existing rows, too
    assert sorted(file.first_row_id for file in data_files(table)) == [0, 1, 3]
    one.prove()


def test_one_transaction_branches_and_schemas(one: Place) -> None:
    table = one.create()
    with table.transaction() as transaction:
        transaction.append(rows(1, 2, 3))
        transaction.delete("id = 2")
        transaction.append(rows(4))
    assert ids(one.open()) == [1, 3, 4]
    assert len(table.snapshots()) == 3
    table.append(rows(9), branch="work")
    assert ids(table) == [1, 3, 4]
    assert table.scan().use_ref("work").to_arrow()["id"].to_pylist() == [9]
    with table.update_schema() as update:
        update.add_column("more", LongType())
    table.append(rows(5).append_column("more", pa.array([7], pa.int64())))
    more = {row["id"]: row["more"] for row in one.open().scan().to_arrow().to_pylist()}
    assert more == {1: None, 3: None, 4: None, 5: 7}
    one.prove()


def test_names_that_avro_does_not_have(one: Place) -> None:
    odd = pa.table({"a b": pa.array([1, 2], pa.int64()), "c.d": ["x", "y"]})
    table = create_table(one.catalog, "db.odd", odd.schema, key_id="k1", kms=one.kms)
    table.append(odd)
    table.delete('"a b" = 1')
    assert table.scan().to_arrow().to_pylist() == [{"a b": 2, "c.d": "y"}]


def test_a_kek_that_is_too_old_is_replaced(one: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = one.create()
    table.append(rows(1))
    now = _keys.time.time()
    monkeypatch.setattr(_keys.time, "time", lambda: now + 10 * 86400)
    properties = {"encryption.kek.max-age-days": "9"}
    kms = CachedKms(one.kms)
    table = open_table(one.catalog, "db.t", kms=kms, properties=properties)
    table.append(rows(2))
    table.append(rows(3))
    assert (kms.calls().wrap_calls, kms.calls().unwrap_calls) == (1, 2)
    keks = [key for key in document(table)["encryption-keys"] if key["encrypted-by-id"] == "k1"]
    assert len(keks) == 2
    assert document(table)["properties"]["encryption.metadata-mac"].endswith(keks[1]["key-id"])
    assert ids(one.open()) == [1, 2, 3]
    with pytest.raises(errors.ConfigurationError, match="max-age-days is '0'"):
        one.open(properties={"encryption.kek.max-age-days": "0"})


# ---- conflicts


def test_another_commit_in_between(place: Place) -> None:
    table = place.create()
    other = place.open()
    for number, change in enumerate(
        (lambda: table.append(rows(9)), lambda: table.delete("id > 0"))
    ):
        other.refresh().append(rows(number))
        before = files(place.folder)
        with pytest.raises((CommitFailedException, ValidationException)):
            change()
        assert files(place.folder) == before
    table.append(rows(2))  # again, on top of the others
    assert ids(table) == ids(place.open()) == [0, 1, 2]
    place.prove()


def test_two_transactions_of_one_table(place: Place) -> None:
    table = place.create()
    one, two = table.transaction(), table.transaction()
    one.append(rows(1))
    two.append(rows(2))
    one.commit_transaction()
    before = files(place.folder)
    with pytest.raises(CommitFailedException, match="changed since this change began"):
        two.commit_transaction()
    assert len(files(place.folder)) < len(before)
    assert ids(table) == ids(place.open()) == [1]
    second = pytest.raises(errors.NotSupportedError, match="the second one of a transaction")
    with second, table.transaction() as both:
        both.append(rows(3))
        both.append(rows(4), branch="audit")
    assert ids(place.open()) == [1]
    place.prove()


def test_rows_of_nan_stay(one: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    table = create_table(one.catalog, "db.t", schema, key_id="k1", kms=one.kms)
    table.append(pa.table({"id": [1, 2, 3], "x": [1.0, 3.0, math.nan]}, schema=schema))
    table.delete("x < 5")
    assert ids(one.open()) == [3]


def test_a_table_that_was_made_anew_is_not_written_as_the_one_before(tmp_path: Path) -> None:
    warehouse = tmp_path / "a house"
    kms = OwnKms(authentic=True)
    table = create_table(warehouse, "db.t", rows(1).schema, key_id="k1", kms=kms)
    table.append(rows(1))
    shutil.rmtree(warehouse)
    again = create_table(warehouse, "db.t", rows(1).schema, key_id="k1", kms=kms)
    again.append(rows(2))
    before = files(warehouse)
    with pytest.raises((CommitFailedException, errors.IcebergCryptoError)):
        table.append(rows(3))
    assert files(warehouse) == before
    assert ids(open_table(warehouse, "db.t", kms=kms)) == [2]
    with pytest.raises(errors.NotSupportedError, match=r"it has write\.metadata\.path"):
        create_table(
            warehouse,
            "db.u",
            rows(1).schema,
            key_id="k1",
            kms=kms,
            table_properties={"write.metadata.path": "/x"},
        )


def test_rows_that_another_client_deletes_in_between(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    data = writer.append([{"id": number, "note": "n"} for number in (1, 2, 3, 4)])
    table = open_table(tmp_path / "t", kms=writer.kms)
    writer.commit(writer.positions(data, [1]))
    before = files(tmp_path)
    with pytest.raises(CommitFailedException):
        table.delete("id = 3")
    assert files(tmp_path) == before
    assert ids(open_table(tmp_path / "t", kms=writer.kms)) == [1, 3, 4]


def test_a_commit_that_fails_leaves_no_file(place: Place) -> None:
    table = place.create(table_properties={"commit.retry.num-retries": "0"})
    place.open().append(rows(1))
    before = files(place.folder)
    with pytest.raises(CommitFailedException, match=r"db\.t has been updated by another process"):
        table.append(rows(2))
    assert files(place.folder) == before
    with pytest.raises(errors.NotSupportedError, match="not made in Python"):
        table.io.delete(data_files(place.open())[0].file_path)


def test_an_unknown_outcome_leaves_all_files(one: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.engine import Connection

    table = one.create()
    before = files(one.folder)

    def lost(self: Any) -> None:
        stock(self)
        raise OSError("connection reset")

    stock = Connection.commit
    monkeypatch.setattr(Connection, "commit", lost)
    with pytest.raises(CommitStateUnknownException, match=r"lake\.db\.t: it is not known.*reset"):
        table.append(rows(1))
    monkeypatch.undo()
    assert before.items() < files(one.folder).items()
    assert ids(one.open()) == [1]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["swap", "made", "create"])
def test_a_process_that_ends_in_the_middle(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    table = place.create()
    table.append(rows(1))

    def end(*_: Any, **__: Any) -> None:
        raise Killed

    for kind in (_commit.Sql, _commit.Hadoop):
        monkeypatch.setattr(kind, step, end)
    monkeypatch.setattr("pyspark_iceberg_crypto.reader._pyiceberg.swap_pointer", end)
    with pytest.raises(Killed):
        table.append(rows(2))
    monkeypatch.undo()
    assert ids(place.open()) == [1]
    place.open().append(rows(3))
    assert ids(place.open()) == [1, 3]


def test_an_error_before_the_commit_leaves_no_file(place: Place) -> None:
    table = place.create()
    table.append(rows(1, 2))
    before = files(place.folder)
    with pytest.raises(ValueError, match="mine"), table.transaction() as transaction:
        transaction.append(rows(3))
        transaction.delete("id = 1")
        raise ValueError("mine")
    assert files(place.folder) == before
    assert ids(place.open()) == [1, 2]


def test_a_storage_that_fails_is_named(one: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = one.create()
    before = files(one.folder)

    def full(self: Any, *_: Any) -> None:
        raise OSError("no space left")

    for kind in ("io._Content.close", "_write.EncryptedParquetWriter.write", "_ags1.encrypt"):
        name = f"pyspark_iceberg_crypto.reader.{kind.replace('io.', '_io.', 1)}"
        with monkeypatch.context() as patched, pytest.raises(Exception, match="no space left"):
            patched.setattr(name, full)
            table.append(rows(1))
        assert files(one.folder) == before
    monkeypatch.setattr("pyspark_iceberg_crypto.reader._write.EncryptedParquetWriter.write", full)
    words = r"Table lake\.db\.t: .*parquet could not be written: no space left"
    with pytest.raises(errors.IcebergCryptoError, match=words):
        table.append(rows(1))


def test_an_error_that_prevents_the_commit_leaves_no_file(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = place.create()
    before = files(place.folder)

    def gone(*_: Any) -> None:
        raise errors.KmsUnavailableError("gone")

    monkeypatch.setattr("pyspark_iceberg_crypto.reader._mac.sign", gone)
    with pytest.raises(errors.KmsUnavailableError, match="gone"):
        table.append(rows(1))
    assert files(place.folder) == before


# ---- refusals


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"write.format.default": "orc"}, "it has write.format.default=orc"),
        ({"write.format.default": "avro"}, "it has write.format.default=avro"),
        ({"write.parquet.page-version": "v2"}, "it has write.parquet.page-version=v2"),
        ({"write.location-provider.impl": "x"}, "it has write.location-provider.impl=x"),
        ({"encryption.column-keys": "k2:note"}, "it has encryption.column-keys=k2:note"),
        ({"encryption.data-key-length": "17"}, "data-key-length='17' is not an AES key length"),
        ({"format-version": "2"}, "format-version=2, and not 3"),
        ({"encryption.key-id": "k2"}, "encryption.key-id=k2, and not k1"),
    ],
)
def test_properties_that_are_not_honoured(
    one: Place, properties: dict[str, str], words: str
) -> None:
    before = files(one.folder)
    with pytest.raises(errors.IcebergCryptoError, match=rf"Table .*db\.t.*{words}") as refused:
        one.create(table_properties=properties)
    assert refused.value.hint
    assert files(one.folder) == before


def test_what_cannot_be_created(one: Place, tmp_path: Path) -> None:
    def refused(kind: type[Exception], words: str, **options: Any) -> None:
        given = {"key_id": "k1", "kms": one.kms, **options}
        with pytest.raises(kind, match=words):
            create_table(given.pop("catalog", one.catalog), "db.t", SCHEMA, **given)

    refused(errors.ConfigurationError, "key_id is empty", key_id=" ")
    refused(errors.ConfigurationError, "no KMS was given to create_table", kms=None)
    rules = {"encryption.allowed-key-ids": "other"}
    refused(errors.AccessDeniedError, "allows only other", properties=rules)
    refused(errors.ConfigurationError, "does not prove who", kms=OwnKms(authentic=False))
    refused(errors.NotSupportedError, "manager-impl=x", properties={"encryption.manager-impl": "x"})
    refused(errors.NotSupportedError, "not in a local file system", catalog="s3://b/w")
    refused(errors.ConfigurationError, "no location but its", catalog=str(tmp_path), location="/x")
    wrong = OwnKms()
    wrong.unwrap_key = lambda wrapped_key, wrapping_key_id: b"0" * 16  # type: ignore[method-assign]
    refused(errors.BadWrappedKeyError, "returned another one when it was asked", kms=wrong)
    assert not files(one.folder)
    one.create()
    before = files(one.folder)
    refused(TableAlreadyExistsError, "already exists")
    assert files(one.folder) == before


def test_tables_that_are_only_read(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append([{"id": 1, "note": "a"}])

    by_file: Any = open_table(writer.metadata, kms=writer.kms)
    with pytest.raises(errors.NotSupportedError, match="opened by a metadata file"):
        by_file.append(rows(2))
    copied = Writer(tmp_path / "original", SCHEMA, hadoop=True)
    copied.append([{"id": 1, "note": "a"}])
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    off = {"encryption.metadata-authentication": "off"}
    copy = open_table(tmp_path / "copy", kms=copied.kms, properties=off)
    with pytest.raises(errors.NotSupportedError, match="metadata is of the table in .*original"):
        copy.append(rows(2))
    other = _load.OfCatalog(NoopCatalog("other"), "db.t")
    with pytest.raises(errors.NotSupportedError, match="its catalog is of class NoopCatalog"):
        other.committer("other.db.t", Settings.of({}))
    older = Writer(tmp_path / "v2", SCHEMA, hadoop=True)
    older.document["format-version"] = 2
    older.write()
    with pytest.raises(errors.NotSupportedError, match="format version 2, and not 3"):
        open_table(tmp_path / "v2", kms=older.kms).append(rows(2))


def test_a_default_that_pyiceberg_does_not_write(tmp_path: Path) -> None:
    more = NestedField(3, "more", LongType(), required=False, write_default=5)
    writer = Writer(tmp_path / "t", Schema(ID, NOTE, more), hadoop=True)
    writer.append([{"id": 1, "note": "a", "more": 2}])
    table = open_table(tmp_path / "t", kms=writer.kms)
    before = files(tmp_path)
    with pytest.raises(errors.ConfigurationError, match="column more is missing.*default, 5"):
        table.append(rows(2))
    assert files(tmp_path) == before
    table.append(rows(2).append_column("more", pa.array([7], pa.int64())))
    assert ids(table) == [1, 2]


# ---- REST


@pytest.fixture
def server() -> Iterator[RestCatalogDouble]:
    with RestCatalogDouble().running() as running:
        yield running


@pytest.fixture
def rest(server: RestCatalogDouble, tmp_path: Path) -> Place:
    return Place(tmp_path, RestCatalog("lake", uri=server.uri), OwnKms())


def test_rest(server: RestCatalogDouble, rest: Place) -> None:
    table = rest.create(location=rest.folder.as_uri())
    assert len(server.tables["db.t"][1]["encryption-keys"]) == 1
    table.append(rows(1, 2))
    other = rest.open()
    other.delete("id = 1")
    with pytest.raises(CommitFailedException):
        table.append(rows(3))
    table.append(rows(3))
    assert ids(table) == ids(rest.open()) == [2, 3]
    rest.prove()
    assert not [path for path, data in files(rest.folder).items() if MARKER.encode() in data]


def test_rest_servers_that_fail_or_drop_keys(server: RestCatalogDouble, rest: Place) -> None:
    table = rest.create(location=rest.folder.as_uri())
    server.after = 504
    with pytest.raises(CommitStateUnknownException, match=r"lake\.db\.t: it is not known whether"):
        table.append(rows(1))
    server.after = 200
    assert ids(rest.open()) == [1]
    server.kept = lambda change: change["action"] != "add-encryption-key"
    with pytest.raises(errors.NotSupportedError, match="did not keep the encryption keys"):
        rest.open().append(rows(2))
    del server.tables["db.t"]
    with pytest.raises(errors.NotSupportedError, match="did not keep the encryption keys"):
        rest.create(location=rest.folder.as_uri())
