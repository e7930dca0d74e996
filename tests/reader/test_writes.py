"""Encrypted tables written without Spark: what is on disk, what others read, conflicts, and what is refused."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import sys
import uuid
import warnings
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
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
from pyiceberg.expressions import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
    bind,
)
from pyiceberg.io.pyarrow import PyArrowFile, expression_to_pyarrow, schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import OperationalError

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.kms import CachedKms
from pyspark_iceberg_crypto.reader import (
    _commit,
    _filters,
    _keys,
    _load,
    _write,
    create_table,
    open_table,
    verify_table,
)
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader._settings import Settings
from pyspark_iceberg_crypto.reader._table import EncryptedScan
from reader.golden import Golden, ViewFs, shared_client

ID = NestedField(1, "id", LongType(), required=False)
NOTE = NestedField(2, "note", StringType(), required=False)
SCHEMA = Schema(ID, NOTE)
BY_NOTE = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "note"))
MARKER = "MARKER-that-is-nowhere"


def rows(*ids: int, note: str = MARKER) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)})


def ids(table: Any) -> list[int]:
    scan = table if isinstance(table, EncryptedScan) else table.scan()
    return sorted(scan.to_arrow()["id"].to_pylist())


def files(folder: Path) -> dict[Path, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".db")
    return {path: path.read_bytes() for path in found}


@dataclass
class Place:
    """A catalog of one table, `db.t`."""

    folder: Path
    catalog: Any
    kms: Any

    def create(self, schema: Any = SCHEMA, name: str = "db.t", **options: Any) -> Any:
        return create_table(self.catalog, name, schema, key_id="k1", kms=self.kms, **options)

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
    ("place", "length"),
    [
        pytest.param("sql", 16, marks=pytest.mark.nightly),
        ("sql", 24),
        pytest.param("hadoop", 32, marks=pytest.mark.nightly),
    ],
    indirect=["place"],
)
def test_rows_that_are_written_are_read_and_no_byte_is_plaintext(place: Place, length: int) -> None:
    told = {"encryption.data-key-length": str(length), "encryption.former-key-id": "k0"}
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


def stored_rows(file: Any) -> list[dict[str, Any]]:
    """The rows of a Parquet file as Arrow reads it."""
    has = pe.create_decryption_properties(key(file).key, aad_prefix=key(file).aad_prefix)
    path = file.file_path.removeprefix("file://")
    return pq.read_table(path, decryption_properties=has).to_pylist()


def test_null_is_no_empty_list_or_map(one: Place) -> None:
    """Of structs: PyIceberg makes new arrays of them, when it reads and when it writes, also after a delete."""
    inner = pa.struct([("a", pa.int64()), ("l", pa.list_(pa.struct([("b", pa.int64())])))])
    types = [("id", pa.int64()), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
    schema = pa.schema([*types, ("s", inner)])
    table = create_table(one.catalog, "db.t", schema, key_id="k1", kms=one.kms)
    struct = {"a": 1, "l": [{"b": 1}, None]}
    full = [struct, {"a": 2, "l": None}, None, {"a": None, "l": []}]
    given = [
        {"id": 1, "l": None, "m": None, "s": None},
        {"id": 2, "l": [], "m": [], "s": struct},
        {"id": 3, "l": full, "m": list(zip("abcd", full, strict=True)), "s": full[1]},
        {"id": 4, "l": None, "m": None, "s": full[3]},
        {"id": 5, "l": full[:1], "m": [("k", None)], "s": None},
    ]
    table.append(pa.Table.from_pylist(given, schema=schema))
    expected = pa.Table.from_pylist(given, schema=schema).to_pylist()

    assert stored_rows(*data_files(table)) == expected
    assert table.scan().to_arrow().to_pylist() == expected
    assert table.scan("id > 1 and id < 5").to_arrow().to_pylist() == expected[1:4]
    table.delete("id = 5")
    assert table.scan().to_arrow().to_pylist() == expected[:4]
    assert [
        {name: row[name] for name in schema.names} for row in stored_rows(*data_files(table))
    ] == expected[:4]


def test_rows_keep_their_ids_when_their_file_is_written_again(one: Place) -> None:
    table = one.create()
    table.append(rows(1, 2))
    table.append(rows(3, 4, 5))
    table.delete("id = 4")
    table.delete("id = 5")

    def lineage() -> dict[int, tuple[int, int]]:
        found = {}
        for file in data_files(table):
            for at, row in enumerate(stored_rows(file)):
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
    golden = Golden.unpacked("jdbc", tmp_path)
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


def test_manifests_stay_out_of_another_tables_folder_that_the_metadata_names(
    tmp_path: Path,
) -> None:
    """As stock clients copy all properties."""
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    other = f"{(tmp_path / 'u').as_uri()}/metadata/authenticated-{uuid.uuid4()}"
    writer.document["properties"]["write.metadata.path"] = other
    writer.append([{"id": 1, "note": "n"}])
    off = {"encryption.metadata-authentication": "off"}
    table = open_table(tmp_path / "t", kms=writer.kms, properties=off)
    place = table.location_provider().new_metadata_location("m.avro")
    assert place == f"{table.location()}/metadata/m.avro"


def test_copied_properties_lead_into_no_other_tables_folder(one: Place) -> None:
    copied = {**one.create().properties, "encryption.data-key-length": "32"}
    assert "/db/t/metadata/authenticated-" in copied["write.metadata.path"]
    before = files(one.folder)
    off = {"encryption.metadata-authentication": "off"}
    for name, properties in (("u", {}), ("v", off)):
        table = one.create(name=f"db.{name}", table_properties=copied, properties=properties)
        table.append(rows(1))
        made = [path.relative_to(one.folder) for path in files(one.folder).keys() - before.keys()]
        assert {path.parts[:2] for path in made} <= {("db", "u"), ("db", "v")}


def test_a_batch_reader_and_merged_manifests(one: Place) -> None:
    told = {
        "commit.manifest-merge.enabled": "true",
        "commit.manifest.min-count-to-merge": "2",
        "write.avro.compression-codec": "GZIP",
        "write.metadata.previous-versions-max": "-1",
    }
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


def test_columns_of_partitions_and_sort_orders_stay(place: Place) -> None:
    """Java would not load the table."""
    spec = PartitionSpec(PartitionField(2, 1000, TruncateTransform(2), "n"))
    order = SortOrder(SortField(1, IdentityTransform()))
    schema = Schema(
        *(ID, NOTE),
        NestedField(3, "d", DecimalType(9, 2), required=False),
        NestedField(4, "x", IntegerType(), required=False),
    )
    table = place.create(schema, partition_spec=spec, sort_order=order)
    table.append(rows(1))
    before = files(place.folder)
    refused = pytest.raises(errors.ConfigurationError, match="partitions or its sort order need: ")
    for column in ("id", "note"):
        with refused, table.update_schema() as update:
            update.delete_column(column)
        with refused, table.transaction() as transaction:
            transaction.append(rows(2))
            transaction.update_schema().delete_column(column).commit()
    other_type = pytest.raises(errors.ConfigurationError, match="of table .* does not become")
    refused_types = ("note", BinaryType()), ("id", IntegerType()), ("d", DecimalType(11, 4))
    for column, kind in refused_types:
        with other_type, table.update_schema(allow_incompatible_changes=True) as update:
            update.update_column(column, kind)
    with other_type, table.transaction() as transaction:
        transaction.update_schema().update_column("x", LongType()).commit()
        transaction.append(rows(2))
        back = transaction.update_schema(allow_incompatible_changes=True)
        back.update_column("x", IntegerType()).commit()
    assert files(place.folder) == before
    with table.update_schema() as update:
        update.add_column("more", LongType()).rename_column("note", "text")
        update.update_column("d", DecimalType(11, 2)).update_column("x", LongType())
    with table.update_schema() as update:
        update.delete_column("more")
    assert place.open().schema().column_names == ["id", "text", "d", "x"]


def formerly_partitioned(folder: Path, **properties: str) -> Writer:
    """A table whose partitions are of a column that was dropped, once they were others."""
    writer = Writer(folder, SCHEMA, partition="note", hadoop=True)
    for number in (1, 2, 3):
        note = "ab"[number % 2]
        writer.append([{"id": number, "note": note}], partition=note)
    writer.repartition(None)
    writer.evolve(Schema(ID))
    writer.document["properties"] |= properties
    writer.write()
    return writer


@pytest.mark.parametrize("change", ["append", "delete", "overwrite"])
def test_a_former_partition_column_that_is_gone(tmp_path: Path, change: str) -> None:
    writer = formerly_partitioned(
        tmp_path / "t",
        **{
            "commit.manifest-merge.enabled": "true",
            "commit.manifest.min-count-to-merge": "2",
            "write.summary.partition-limit": "9",
        },
    )
    table = open_table(tmp_path, "t", kms=writer.kms)
    new = rows(4).select(["id"])
    if change == "append":
        table.append(new)
    elif change == "delete":
        table.delete("id = 1")
    else:
        table.overwrite(new, "id = 1")
    again = open_table(tmp_path, "t", kms=writer.kms)
    assert ids(again) == [*([1] if change == "append" else []), 2, 3, *([4] * (change != "delete"))]
    former = [
        one for one in again.current_snapshot().manifests(again.io) if one.partition_spec_id == 0
    ]
    for one in former:
        values = [
            entry.data_file.partition[0] for entry in one.fetch_manifest_entry(again.io, False)
        ]
        (summary,) = one.partitions
        ends = (summary.lower_bound, summary.upper_bound)
        assert ends == (min(values).encode(), max(values).encode())
    assert len(former) == (3 if change == "delete" else 1)  # appends merge
    assert verify_table(tmp_path, "t", kms=writer.kms, deep=True, all_snapshots=True).ok


def test_a_former_partition_column_that_no_schema_has(tmp_path: Path) -> None:
    writer = formerly_partitioned(tmp_path / "t")
    del writer.document["schemas"][0]
    writer.write()
    table = open_table(tmp_path, "t", kms=writer.kms)
    before = files(tmp_path)
    words = r"Table t is not written in Python: .* partition spec 0, whose columns are in no schema"
    with pytest.raises(errors.NotSupportedError, match=words):
        table.delete("id = 1")
    assert files(tmp_path) == before
    table.append(rows(4).select(["id"]))  # which leaves these files alone
    assert ids(table) == [1, 2, 3, 4]


@pytest.mark.parametrize("branch", ["main", "new"])
def test_a_filter_of_a_member_finds_nothing_where_nothing_is(one: Place, branch: str) -> None:
    member = StructType(NestedField(4, "x", LongType(), required=False))
    table = one.create(Schema(ID, NestedField(3, "s", member, required=False)))
    if branch != "main":
        table.append(pa.table({"id": [3]}))
    before = table.snapshots()
    with pytest.warns(UserWarning, match="did not match any records"):
        table.delete("s.x = 1", branch=branch)
    assert table.snapshots() == before
    table.overwrite(pa.table({"id": [1], "s": [{"x": 1}]}), "s.x = 1", branch=branch)
    table.overwrite(pa.table({"id": [2], "s": [{"x": 1}]}), "s.x = 1", branch=branch)
    assert ids(one.open().scan().use_ref(branch)) == [2]


def test_names_that_avro_does_not_have(one: Place) -> None:
    odd = pa.table({"a b": pa.array([1, 2], pa.int64()), "c.d": ["x", "y"]})
    table = one.create(odd.schema, "db.odd")
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
    others = iter(table.keys.entries.values())  # as another thread goes through them
    table.keys.sealed(next(others), KeyMetadata(b"0" * 16, b"", None))
    assert list(others)
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
    before = files(place.folder)
    second = pytest.raises(errors.NotSupportedError, match="the second one of a transaction")
    with second, table.transaction() as both:
        both.append(rows(3))
        both.append(rows(4), branch="audit")
    with pytest.raises(errors.NotSupportedError, match="of which neither follows the other"):
        table.overwrite(rows(3), "id = 1", branch=None)
    assert files(place.folder) == before
    assert ids(place.open()) == [1]
    place.prove()


def test_a_transaction_is_used_again_and_not_changed_by_a_refresh(place: Place) -> None:
    table = place.create()
    transaction = table.transaction()
    transaction.append(rows(1))
    table.refresh()
    for _ in range(2):  # the second time, nothing is staged
        assert transaction.commit_transaction() is table
    older = transaction.update_snapshot().fast_append()
    transaction.append(rows(2))
    with pytest.raises(CommitFailedException, match="another change was staged in this"):
        older.commit()  # it would not have what was staged since
    transaction.commit_transaction()
    assert ids(table) == ids(place.open()) == [1, 2]
    assert len(table.snapshots()) == 2


def test_a_transaction_begins_with_one_state(one: Place) -> None:
    class Slow:
        def __getattr__(self, name: str) -> Any:
            began.append(table.as_it_is())
            return getattr(fresh, name)

    began: list[Any] = []
    table: Any = one.create()
    fresh = one.open()
    fresh.append(rows(1))
    table._become(Slow())
    for state in (*began, table):
        assert len(state.loaded.document["snapshots"]) == len(state.metadata.snapshots)


def test_a_reader_of_rows_is_read_once(one: Place) -> None:
    unread = rows(4).to_reader()
    with pytest.raises(NotImplementedError, match="given as a pa.Table"):
        one.create(name="db.p", partition_spec=BY_NOTE).append(unread)
    table = one.create()
    with pytest.raises(RolledBackError), table.transaction() as ended:
        raise RolledBackError
    with pytest.raises(RuntimeError, match="ended with an error"):
        ended.append(unread)
    one.open().append(rows(1))
    reader = rows(2, 3).to_reader()
    with pytest.raises(CommitFailedException, match=r"another pa\.RecordBatchReader"):
        table.append(reader)
    before = files(one.folder)
    for change in (table.append, table.overwrite):
        with pytest.raises(errors.ConfigurationError, match="was given to another change"):
            change(reader)
    assert files(one.folder) == before
    table.append(rows(2, 3).to_reader())
    table.append(unread)
    assert ids(one.open()) == [1, 2, 3, 4]


class RolledBackError(Exception):
    pass


def test_what_a_scan_shows_is_deleted(one: Place) -> None:
    """Of whole files and of parts of them, by metrics or by reading."""
    inner = pa.struct([("a", pa.int64())])
    types = [("id", pa.int64()), ("x", pa.int32()), ("y", pa.float64()), ("s", pa.string())]
    schema = pa.schema([*types, ("n", inner)])
    table = one.create(schema)
    for given in (
        [(1, 6, 6.0, "b", 1), (2, 7, 6.0, "c", 2), (3, None, math.nan, None, None)],
        [(4, 5, 5.0, "a", 1), (5, 6, 6.0, "b", 3), (6, None, None, None, 3)],
        [(7, None, None, None, 1), (8, None, math.nan, None, 1)],
    ):
        *columns, last = map(list, zip(*given, strict=True))
        columns.append([None if one is None else {"a": one} for one in last])
        table.append(pa.table(columns, schema=schema))
    conditions = [
        *("x != 5", "not x = 5", "x not in (4, 5)", "x > 5", "x is not null", "x >= 6 or id = 3"),
        *("not y < 5", "y is not nan", "x != 5 and id > 5", "s not like 'a%'"),
        *("y != 6", "y is nan", "not y > 5", "n.a != 1"),
    ]
    every = table.scan().to_arrow()
    for condition in conditions:
        shown = set(ids(table.scan(condition)))
        bound = bind(table.schema(), parse(condition), case_sensitive=True)
        meant = every.filter(expression_to_pyarrow(bound, table.schema()))
        assert shown == set(meant["id"].to_pylist()), condition
        assert left_by(table, condition) == [one for one in range(1, 9) if one not in shown]


def left_by(table: Any, condition: Any) -> list[int]:
    """The rows that a delete leaves, which is not committed."""
    left: list[int] = []
    with suppress(RolledBackError), table.transaction() as transaction:
        transaction.delete(condition)
        left = transaction._scan().to_arrow()["id"].to_pylist()
        raise RolledBackError
    return sorted(left)


def test_numbers_that_a_type_does_not_have(one: Place) -> None:
    """They are neither rounded, nor is null less than them; nor is it in files with a type from before."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.int32()), ("y", pa.float32())])
    table = one.create(schema)
    for given in (
        [(1, 2147483647, 1.5), (2, -5, math.inf), (3, None, None)],
        [(4, 7, math.nan), (5, 5, 0.1)],
        [(6, None, None)],
    ):
        named = [dict(zip(schema.names, row, strict=True)) for row in given]
        table.append(pa.Table.from_pylist(named, schema=schema))
    known = [1, 2, 4, 5]
    by_number: list[tuple[Any, list[int]]] = [
        *((f"x {sign} 3000000000", known) for sign in ("<", "!=")),
        *((f"x {sign} -3000000000", known) for sign in (">", ">=")),
        *((f"not x {sign} 3000000000", known) for sign in (">", "=")),
        *((f"x {sign} 3000000000", []) for sign in (">=", "=")),
        *((f"not x {sign} 3000000000", []) for sign in ("<=", "!=")),
        *(("x <= 6.6", [2, 5]), ("x > 6.4", [1, 4]), ("x != 6.6", known)),
        ("x < '3000000000'", known),
        ("x in (3000000000, 4000000000)", []),
        *((f"{no} (5, 3000000000)", [1, 2, 3, 4, 6]) for no in ("x not in", "not x in")),
        *((f"{yes} (5, 3000000000)", [5]) for yes in ("not x not in", "x in")),
        *((LessThan("y", 1e39), [1, 5]), (GreaterThanOrEqual("y", 1e39), [2])),
        *((GreaterThan("y", -1e39), [1, 2, 5]), (EqualTo("y", 1e39), [])),
        *((NotEqualTo("y", 1e39), known), (Not(EqualTo("y", 1e39)), known)),
        *((Not(NotEqualTo("y", 1e39)), []), (LessThan("y", math.inf), [1, 5])),
        *((LessThanOrEqual("y", math.inf), [1, 2, 5]), (EqualTo("y", math.inf), [2])),
        (In("y", (1.5, 1e39, math.inf)), [1, 2]),
    ]
    for wider in (False, True):
        if wider:
            with table.update_schema() as update:
                update.update_column("x", LongType()).update_column("y", DoubleType())
            by_number += [(EqualTo("y", 0.1), []), (In("y", (0.1, 1.5)), [1])]
        for condition, shown in by_number:
            scan = table.scan(condition)
            assert (ids(scan), scan.count()) == (shown, len(shown)), condition
            if wider != isinstance(condition, str):  # each is deleted by once, to save time
                assert left_by(table, condition) == [one for one in range(1, 7) if one not in shown]
        appended = table.incremental_append_scan(row_filter="x < 3000000000").to_arrow()
        assert sorted(appended["id"].to_pylist()) == known
    table.overwrite(rows(9).select(["id"]), "x < 3000000000")
    assert ids(one.open()) == [3, 6, 9]


def test_fractions_that_a_type_does_not_have(one: Place) -> None:
    """A float is compared with the float next to them; the others with the numbers beside them."""
    schema = Schema(
        ID,
        NestedField(2, "y", FloatType(), required=False),
        NestedField(3, "d", DecimalType(38, 2), required=False),
        NestedField(4, "day", DateType(), required=False),
    )
    spec = PartitionSpec(PartitionField(4, 1000, YearTransform(), "year"))
    table = one.create(schema, partition_spec=spec)
    noon, midnight = datetime(2026, 1, 2, 12), datetime(2026, 1, 2)
    row = {"id": 1, "y": 0.1, "d": Decimal("2.68"), "day": midnight.date()}
    for given in (row, {"id": 2}):
        table.append(pa.Table.from_pylist([given], schema=table.schema().as_arrow()))
    by_number: list[tuple[Any, list[int]]] = [
        *((f"y {sign} 0.1", [1]) for sign in ("=", "<=", ">=")),
        *((f"y {sign} 0.1", []) for sign in ("!=", "<", ">")),
        *((In("y", (0.1, 1.5)), [1]), (NotIn("y", (0.1, 1.5)), [2])),
        *((f"d {sign} 2.676", [1]) for sign in ("!=", ">", ">=")),
        *((f"d {sign} 2.676", []) for sign in ("=", "<", "<=")),
        *((f"not d {sign} 2.676", [1]) for sign in ("=", "<")),
        *((EqualTo("d", 2.676), []), (EqualTo("d", 2.68), [1]), ("d = 2.680", [1])),
        *((LessThan("d", 10**40), [1]), (EqualTo("d", 10**40), []), (LessThan("d", math.inf), [1])),
        *((GreaterThan("d", Decimal(f"-{10**35}.001")), [1]), ("d < -5000", []), ("d < 2.7", [1])),
        *((In("d", (2.676, 2.68)), [1]), (NotIn("d", (2.676, 2.68)), [2])),
        *((kind("day", noon), []) for kind in (EqualTo, GreaterThan, GreaterThanOrEqual)),
        *((kind("day", noon), [1]) for kind in (NotEqualTo, LessThan, LessThanOrEqual)),
        *((EqualTo("day", midnight), [1]), (NotEqualTo("day", midnight), [])),
        *((In("day", (noon, midnight)), [1]), (In("day", (noon, noon)), [])),
        (LessThan("day", 3000000000), [1, 2]),  # as PyIceberg
    ]
    for condition, shown in by_number:
        scan = table.scan(condition)
        assert (ids(scan), scan.count()) == (shown, len(shown)), condition
        assert left_by(table, condition) == [one for one in (1, 2) if one not in shown], condition


def test_files_of_nan_are_planned_by_numbers_that_their_type_does_not_have() -> None:
    """PyIceberg's own files have no counts of NaN, Java's have."""
    schema = Schema(NestedField(1, "y", FloatType(), required=False))
    counts = {"value_counts": {1: 2}, "null_value_counts": {1: 0}, "nan_value_counts": {1: 2}}
    file: Any = SimpleNamespace(record_count=2, lower_bounds={}, upper_bounds={}, **counts)
    for condition, shown in (
        *((NotEqualTo("y", 1e39), True), (Not(EqualTo("y", 1e39)), True)),
        *((EqualTo("y", 1e39), False), (Not(NotEqualTo("y", 1e39)), False)),
    ):
        fitting = _filters.fitting(condition, schema, True)
        for evaluator in (_InclusiveMetricsEvaluator, _StrictMetricsEvaluator):
            assert evaluator(schema, fitting).eval(file) == shown, condition


@pytest.mark.parametrize("transform", [TruncateTransform(8), IdentityTransform()])
def test_numbers_that_the_type_of_a_partition_does_not_have(
    one: Place, transform: Transform[Any, Any]
) -> None:
    schema = Schema(ID, NestedField(2, "x", IntegerType(), required=False))
    spec = PartitionSpec(PartitionField(2, 1000, transform, "part"))
    table = one.create(schema, partition_spec=spec)
    values = pa.array([2147483647, -2147483648, None], pa.int32())
    table.append(pa.table({"id": pa.array([1, 2, 3]), "x": values}))
    for condition in ("x < 3000000000", "x != -3000000000", "x > -3000000000"):
        assert (ids(table.scan(condition)), table.scan(condition).count()) == ([1, 2], 2)
    for condition in ("x > 3000000000", "x = 3000000000", "x < -3000000000"):
        assert ids(table.scan(condition)) == []
    table.delete("x < 3000000000")
    assert ids(one.open()) == [3]


def test_a_warehouse_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/in")
    kms = OwnKms()
    for path, there in (
        ("wh", "wh"),
        (Path("./wh2/"), "wh2"),
        ("link/../wh", "real/wh"),  # as the system takes it
        ("link/wh", "link/wh"),
        (tmp_path / "link" / "wh3", "link/wh3"),
    ):
        table = create_table(path, "db.t", SCHEMA, key_id="k1", kms=kms)
        assert table.location() == f"{(tmp_path / there).as_uri()}/db/t"
        table.append(rows(1))
        for again in (path, tmp_path / there):
            assert ids(open_table(again, "db.t", kms=kms)) == [1]
        assert ids(open_table(f"{path}/db/t", kms=kms)) == [1]


def test_a_filter_is_of_the_columns_that_its_snapshot_had(one: Place) -> None:
    """A column that was dropped, and another one of its name; a delete is of the table's columns, on branches too."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.int64())])
    table: Any = create_table(one.catalog, "db.t", schema, key_id="k1", kms=one.kms)
    table.append(pa.table({"id": [1, 2], "x": [5, 6]}))
    old = table.current_snapshot().snapshot_id
    table.append(pa.table({"id": [7, 8], "x": [7, 8]}), branch="work")
    for change in ("delete_column", "add_column"):
        with table.update_schema() as update:
            getattr(update, change)("x", *([LongType()] if change == "add_column" else []))
    table.append(pa.table({"id": [3], "x": [5]}))
    then = table.scan("x = 5", snapshot_id=old)
    assert (ids(then), then.count()) == ([1], 1)
    assert ids(table.scan("x != 5", snapshot_id=old)) == [2]
    assert ids(table.scan("x = 7").use_ref("work")) == [7]
    assert ids(table.scan("x = 5")) == ids(table.scan("x = 5").use_ref("main")) == [3]
    table.delete("x is null and id = 7", branch="work")
    assert ids(table.scan().use_ref("work")) == [8]
    table.delete("x = 5")
    assert ids(table) == [1, 2]


def test_rows_are_counted_in_a_partition_of_null(one: Place) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "x"))
    schema = Schema(ID, NestedField(2, "x", LongType(), required=False))
    table = one.create(schema, partition_spec=spec)
    table.append(pa.table({"id": [1, 2], "x": [5, 6]}))
    table.append(pa.table({"id": [3]}))  # by a column that it lacks
    for condition, found in (("x != 5", [2]), ("x >= 6 or id = 3", [2, 3]), ("x is null", [3])):
        assert ids(table.scan(condition)) == found
        assert table.scan(condition).count() == len(found)
        appended = table.incremental_append_scan(row_filter=condition)
        assert sorted(appended.to_arrow()["id"].to_pylist()) == found
    assert len(list(table.incremental_append_scan(row_filter="x = 6").plan_files())) == 1


def test_rows_of_nan_stay(one: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    table = one.create(schema)
    table.append(pa.table({"id": [1, 2, 3], "x": [1.0, 3.0, math.nan]}, schema=schema))
    table.delete("x < 5")
    assert ids(one.open()) == [3]


def test_a_table_that_was_made_anew_is_not_written_as_the_one_before(tmp_path: Path) -> None:
    warehouse = tmp_path / "a house"
    place = Place(warehouse, warehouse, OwnKms(authentic=True))
    table = place.create()
    table.append(rows(1))
    shutil.rmtree(warehouse)
    again = place.create()
    again.append(rows(2))
    before = files(warehouse)
    with pytest.raises((CommitFailedException, errors.IcebergCryptoError)):
        table.append(rows(3))
    assert files(warehouse) == before
    assert ids(place.open()) == [2]
    with pytest.raises(errors.NotSupportedError, match=r"it has write\.metadata\.path"):
        place.create(name="db.u", table_properties={"write.metadata.path": "/x"})


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


@pytest.mark.parametrize("fault", [OSError("connection reset"), KeyboardInterrupt("reset")])
def test_an_unknown_outcome_leaves_all_files(
    one: Place, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    def lost(self: Any) -> None:
        stock(self)
        raise fault

    table = one.create()
    transaction = table.transaction()
    transaction.append(rows(1))
    stock = Connection.commit
    monkeypatch.setattr(Connection, "commit", lost)
    with pytest.raises((CommitStateUnknownException, KeyboardInterrupt), match="reset") as raised:
        transaction.commit_transaction()
    monkeypatch.undo()
    made = table.refresh().current_snapshot().snapshot_id
    before = files(one.folder)
    words = rf"lake\.db\.t: it is not known whether .* or had, snapshot {made}:"
    told = "".join((str(raised.value), *getattr(raised.value, "__notes__", ())))
    assert re.search(words, told, re.DOTALL) or sys.version_info < (3, 11)
    for again in (transaction.commit_transaction, lambda: transaction.append(rows(2))):
        with pytest.raises(CommitStateUnknownException, match=f"(?s){words}"):
            again()
    with pytest.raises(ValueError, match="mine"), transaction:
        raise ValueError("mine")
    assert files(one.folder) == before
    assert ids(one.open()) == [1]


@pytest.mark.parametrize(
    ("number", "made", "kind", "words"),
    [
        (errno.EIO, True, CommitStateUnknownException, "it is not known whether"),
        (errno.EPERM, False, errors.IcebergCryptoError, "could not be written"),
    ],
)
def test_a_link_that_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    made: bool,
    kind: type[Exception],
    words: str,
) -> None:
    def fail(source: Path, target: Path) -> None:
        if made:
            stock(source, target)
        raise OSError(number, "of the link")

    table = Place(tmp_path, str(tmp_path), shared_client()).create()
    before = files(tmp_path)
    stock = os.link
    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(kind, match=f"(?s){words}.*of the link"):
        table.append(rows(1))
    assert (files(tmp_path) != before) == made
    assert ids(open_table(tmp_path, "db.t", kms=shared_client())) == [1] * made


@pytest.mark.parametrize("at", ["connect", "execute", "commit"])
def test_a_database_that_fails(one: Place, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    def fail(self: Any, *given: Any, **options: Any) -> Any:
        if at != "connect" and not getattr(given[0], "is_update", False):
            return execute(self, *given, **options)
        if at == "commit":  # as a driver does that commits by itself
            execute(self, *given, **options)
            self.commit()
        raise OperationalError("UPDATE", {}, Exception("database is locked"))

    table = one.create()
    before = files(one.folder)
    transaction = table.transaction()
    transaction.append(rows(1))
    execute = Connection.execute
    name = "connect" if at == "connect" else "execute"
    monkeypatch.setattr({"connect": Engine, "execute": Connection}[name], name, fail)
    if at == "commit":
        with unknown():
            transaction.commit_transaction()
        monkeypatch.undo()
        assert ids(one.open()) == [1]
        return
    words = "lake.db.t: the database of its catalog could not be changed: .*is locked"
    with pytest.raises(errors.IcebergCryptoError, match=words):
        transaction.commit_transaction()
    monkeypatch.undo()
    assert files(one.folder) == before
    table.append(rows(2))


def test_nothing_fails_after_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("read only")

    table = Place(tmp_path, str(tmp_path), shared_client()).create()
    monkeypatch.setattr(Path, "replace", fail)  # of the version hint
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.append(rows(1))
    assert ids(table) == [1]


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
    for again in (transaction.commit_transaction, lambda: transaction.delete("id = 1")):
        with pytest.raises(RuntimeError, match="what was staged in it then was not committed"):
            again()
    assert files(place.folder) == before
    assert ids(place.open()) == [1, 2]


@pytest.mark.parametrize("change", ["overwrite", "delete"])
def test_a_change_is_made_as_a_whole_or_not_at_all(
    one: Place, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left")

    table = one.create()
    table.append(rows(1, 2))
    table.append(rows(3))
    with table.transaction() as transaction:
        transaction.append(rows(4))
        before = files(one.folder)
        with monkeypatch.context() as patched, pytest.raises(Exception, match="no space left"):
            patched.setattr(_write.EncryptedParquetWriter, "write", full)
            if change == "delete":
                transaction.delete("id = 1 or id = 3")
            else:
                transaction.overwrite(rows(9), "id <= 3")
        assert files(one.folder) == before
    assert ids(one.open()) == [1, 2, 3, 4]
    one.prove()


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
        ({"write.parquet.compression-codec": "x"}, "has write.parquet.compression-codec=x"),
        ({"write.avro.compression-codec": "x"}, "has write.avro.compression-codec=x"),
        ({"write.metadata.previous-versions-max": "x"}, "versions-max='x' is not a number"),
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
        given = {"key_id": "k1", "kms": one.kms, "schema": SCHEMA, **options}
        with pytest.raises(kind, match=words):
            create_table(given.pop("catalog", one.catalog), "db.t", **given)

    refused(errors.ConfigurationError, "key_id is empty", key_id=" ")
    refused(errors.ConfigurationError, "no KMS was given to create_table", kms=None)
    rules = {"encryption.allowed-key-ids": "other"}
    refused(errors.AccessDeniedError, "allows only other", properties=rules)
    refused(errors.ConfigurationError, "does not prove who", kms=OwnKms(authentic=False))
    refused(errors.NotSupportedError, "manager-impl=x", properties={"encryption.manager-impl": "x"})
    inner = NestedField(2, "a", LongType(), required=False, initial_default=7, write_default=8)
    schema = Schema(NestedField(1, "s", StructType(inner), required=False))
    refused(errors.ConfigurationError, "default of column s.a", schema=schema)
    year = PartitionSpec(PartitionField(1, 1000, YearTransform(), "year"))
    refused(errors.ConfigurationError, "need: .*transform: year", partition_spec=year)
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


def test_defaults_of_columns_that_rows_lack(tmp_path: Path) -> None:
    more = NestedField(3, "more", LongType(), required=True, write_default=5)
    word = NestedField(4, "word", StringType(), initial_default="old", write_default="new")
    none = NestedField(5, "none", LongType(), initial_default=5)
    within = StructType(
        NestedField(7, "a", LongType(), required=False, write_default=5),
        NestedField(8, "b", LongType(), required=False),
    )
    struct = NestedField(6, "struct", within, required=False)
    writer = Writer(tmp_path / "t", Schema(ID, NOTE, more, word, none, struct), hadoop=True)
    writer.write()
    table = open_table(tmp_path / "t", kms=writer.kms)
    table.append(rows(1))
    table.append(rows(2).to_reader())
    given = pa.field("more", pa.int64(), nullable=False)
    table.append(rows(3).append_column(given, pa.array([7], pa.int64())))
    told = open_table(tmp_path / "t", kms=writer.kms).scan().to_arrow().sort_by("id")
    assert told.column("struct").null_count == 3
    lacks = rows(4).append_column("struct", pa.array([{"b": 1}]))
    with pytest.raises(errors.ConfigurationError, match=r"column struct\.a is missing"):
        table.append(lacks)
    assert told.drop(["note", "struct"]).to_pylist() == [
        {"id": 1, "more": 5, "word": "new", "none": None},
        {"id": 2, "more": 5, "word": "new", "none": None},
        {"id": 3, "more": 7, "word": "new", "none": None},
    ]
    day = NestedField(3, "day", DateType(), required=False, write_default=date(2026, 1, 1))
    writer = Writer(tmp_path / "u", Schema(ID, NOTE, day), hadoop=True)
    writer.write()
    with pytest.raises(errors.ConfigurationError, match="column day is missing.*default, 2026"):
        open_table(tmp_path / "u", kms=writer.kms).append(rows(2))


# ---- names and partitions


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_defaults_that_metadata_does_not_have(one: Place, number: float) -> None:
    member = StructType(NestedField(4, "x", DoubleType(), required=False))
    table = one.create(Schema(ID, NestedField(3, "s", member, required=False)))
    table.append(pa.table({"id": [1]}))
    before = files(one.folder)
    words = rf"of table lake\.db\.t cannot have the default {number}: metadata has only finite"
    for required in (True, False):
        update = table.update_schema()
        update.add_column("c", DoubleType(), required=required, default_value=number)
        with pytest.raises(errors.ConfigurationError, match=f"Column c {words}"):
            update.commit()
    with pytest.raises(errors.ConfigurationError, match=rf"Column s\.x {words}"):
        table.update_schema().set_default_value(("s", "x"), number).commit()
    assert files(one.folder) == before
    table.update_schema().add_column("c", DoubleType(), required=True, default_value=1.5).commit()
    assert one.open().scan().to_arrow()["c"].to_pylist() == [1.5]


def test_a_name_with_a_dot_has_one_folder(tmp_path: Path) -> None:
    table = create_table(tmp_path, ("db", "a.b"), SCHEMA, key_id="k1", kms=OwnKms())
    assert table.location() == (tmp_path / "db" / "a.b").as_uri()


def test_each_transform(one: Place) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    columns: list[tuple[Any, Transform[Any, Any], list[Any]]] = [
        (LongType(), BucketTransform(2), [1, 2, 3]),
        (StringType(), TruncateTransform(2), ["abc", "abd", None]),
        (StringType(), BucketTransform(3), ["abc", "abd", None]),
        (StringType(), VoidTransform(), ["abc", "abd", None]),
        (BinaryType(), BucketTransform(3), [b"x", b"y", None]),
        (DecimalType(10, 2), TruncateTransform(50), [Decimal("1.23"), Decimal("1.29"), None]),
        *(
            (TimestamptzType(), transform, [noon, noon, None])
            for transform in (YearTransform(), MonthTransform(), DayTransform(), HourTransform())
        ),
    ]
    schema = Schema(
        *(
            NestedField(number, "id" if number == 1 else f"c{number}", column[0], required=False)
            for number, column in enumerate(columns, 1)
        )
    )
    spec = PartitionSpec(
        *(
            PartitionField(number, 1000 + number, column[1], f"p{number}")
            for number, column in enumerate(columns, 1)
        )
    )
    table = one.create(schema, partition_spec=spec)
    table.append(pa.table([column[2] for column in columns], schema=schema_to_pyarrow(schema)))
    table.delete("id = 2")
    assert ids(one.open().scan("c9 = '2026-01-01T12:00:00+00:00' and c2 = 'abc'")) == [1]
    assert ids(one.open()) == [1, 3]
    one.prove()


@pytest.mark.parametrize(
    ("kind", "value", "refused"),
    [
        (BooleanType(), True, ()),
        (IntegerType(), 5, ()),
        (LongType(), 5, ()),
        (FloatType(), 1.5, ()),
        (DoubleType(), 1.5, ()),
        (DecimalType(9, 2), Decimal("1.20"), ()),
        (DateType(), 5, ()),
        (TimeType(), 5, ("bucket[4]",)),
        (TimestampType(), 5, ()),
        (TimestamptzType(), 5, ()),
        (TimestampNanoType(), 5, ("identity", "hour")),
        (TimestamptzNanoType(), 5, ("identity", "hour")),
        (StringType(), "abc", ()),
        (BinaryType(), b"abc", ("truncate[2]",)),
        (FixedType(3), b"abc", ()),
        (UUIDType(), b"\x01" * 16, ("identity",)),
    ],
    ids=str,
)
def test_each_transform_of_each_type_is_written_or_refused(
    tmp_path: Path, kind: Any, value: Any, refused: tuple[str, ...]
) -> None:
    schema = Schema(ID, NestedField(2, "x", kind, required=False))
    transforms = [IdentityTransform(), BucketTransform(4), TruncateTransform(2)]
    transforms += [YearTransform(), MonthTransform(), DayTransform(), HourTransform()]
    found = []
    for transform in (one for one in transforms if one.can_transform(kind)):
        spec = PartitionSpec(PartitionField(2, 1000, transform, "part"))
        name, place = type(transform).__name__, Place(tmp_path, str(tmp_path), OwnKms())
        table = place.create(schema, f"db.{name}", partition_spec=spec)
        before = files(tmp_path)
        of = schema_to_pyarrow(schema).field("x").type
        values = pa.array([value, None], getattr(of, "storage_type", of))
        try:
            table.append(pa.table({"id": [1, 2], "x": values.cast(of)}))
        except errors.NotSupportedError as error:
            words = f"field part, {transform} of a {kind}, is not written in Python"
            assert f"Table db.{name}: partition {words}" in str(error)
            assert files(tmp_path) == before
            found.append(str(transform))
        else:
            assert ids(table) == [1, 2]
    assert found == list(refused)


@pytest.mark.parametrize("values", [[1.0, math.nan], [0.0, -0.0]])
def test_partitions_that_pyiceberg_loses_or_doubles(one: Place, values: list[float]) -> None:
    schema = Schema(ID, NestedField(2, "x", DoubleType(), required=False))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "x"))
    table = one.create(schema, partition_spec=spec)
    before = files(one.folder)
    with pytest.raises(errors.NotSupportedError, match="a partition of NaN, or of 0.0 and -0.0"):
        table.append(pa.table({"id": [1, 2], "x": values}))
    assert files(one.folder) == before
    table.append(pa.table({"id": pa.array([1, 2, 3]), "x": [1.0, 2.0, None]}))
    assert ids(table) == [1, 2, 3]


# ---- REST


@pytest.fixture
def server() -> Iterator[RestCatalogDouble]:
    running = RestCatalogDouble().start()
    yield running
    running.stop()


@pytest.fixture
def rest(server: RestCatalogDouble, tmp_path: Path) -> Place:
    return Place(tmp_path, RestCatalog("lake", uri=server.url), OwnKms())


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
    words = "(?s)did not keep the encryption keys.*Snapshot .* was committed"
    good, *_ = rest.open().snapshots()
    with pytest.raises(errors.NotSupportedError, match=words) as lost:
        rest.open().append(rows(2))
    assert (
        f"roll branch 'main' back to snapshot {good.snapshot_id}; commits to it" in lost.value.hint
    )
    with pytest.raises(errors.NotSupportedError, match=words) as lost:
        rest.open().append(rows(2), branch="audit")
    assert "Do not drop the table" in lost.value.hint and "drop branch 'audit'" in lost.value.hint
    del server.tables["db.t"]
    with pytest.raises(errors.NotSupportedError, match="(?s)did not keep the encryption.*drop it"):
        rest.create(location=rest.folder.as_uri())


def test_rest_servers_with_another_table_of_the_name(
    server: RestCatalogDouble, rest: Place
) -> None:
    server.then = lambda: (server.tables.update({"db.t": ("x", {"refs": {}})}), 200)[1]
    with pytest.raises(TableAlreadyExistsError, match=r"lake\.db\.t already exists"):
        rest.create(location=rest.folder.as_uri())


def test_rest_servers_that_stage_another_format(
    server: RestCatalogDouble, rest: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was created: whoever drops the table drops another client's."""
    staged = {"format-version": 2}
    stock = RestCatalogDouble._staged
    monkeypatch.setattr(server, "_staged", lambda body: stock(body) | staged)
    words = r"lake\.db\.t: the catalog's server creates it with format version 2, although 3 was"
    with pytest.raises(errors.NotSupportedError, match=words) as refused:
        rest.create(location=rest.folder.as_uri())
    assert "Nothing was written" in refused.value.hint and "drop" not in refused.value.hint
    assert server.tables == {}


def test_a_table_that_a_proxy_creates_twice(server: RestCatalogDouble, rest: Place) -> None:
    """It is there, and the answer is a refusal: of the second request."""

    def staged() -> int:
        server.then = lambda: 409
        return 200

    server.then = staged
    table = rest.create(location=rest.folder.as_uri())
    assert server.then is None
    table.append(rows(1))
    assert ids(rest.open()) == [1]
    with pytest.raises(TableAlreadyExistsError, match=r"lake\.db\.t already exists"):
        rest.create(location=rest.folder.as_uri())


@pytest.mark.parametrize(
    ("on_top", "heads_only", "branch"),
    [(0, False, "main"), (1, False, "main"), (1, True, "main"), (2, True, "main"), (0, True, None)],
)
def test_a_request_that_a_proxy_sends_twice(
    server: RestCatalogDouble, rest: Place, on_top: int, heads_only: bool, branch: str | None
) -> None:
    """The change was made, and the answer is a refusal: of the second request."""

    def then() -> int:
        other = rest.open()
        for number in range(on_top):
            other.append(rows(7 + number))
        server.heads_only = heads_only
        return 409

    table = rest.create(location=rest.folder.as_uri())
    table.append(rows(1))
    server.then = then
    with nullcontext() if on_top + heads_only < 3 and branch else unknown():
        table.append(rows(2), branch=branch)
    server.heads_only = False
    assert ids(rest.open()) == [1, *([2] if branch else []), *range(7, 7 + on_top)]
    made = {one.snapshot_id for one in rest.open().snapshots()}
    assert len(made) == 2 + on_top
    for one in made:  # all of its files are there
        rest.open().scan(snapshot_id=one).to_arrow()


def test_rest_commits_take_newer_credentials(server: RestCatalogDouble, rest: Place) -> None:
    token = "s3.session-token"
    server.config = {token: "old"}
    table = rest.create(location=rest.folder.as_uri())
    server.config = {token: "new"}
    table.append(rows(1))
    assert (table.stored.properties[token], table.config[token]) == ("new", "new")
    assert ids(table) == [1]


@pytest.mark.parametrize("others", ["none", "one on top", "a conflict"])
def test_a_change_of_columns_that_a_proxy_sends_twice(
    server: RestCatalogDouble, rest: Place, others: str
) -> None:
    def other() -> int:
        rest.open().update_schema().add_column("other", LongType()).commit()
        return 409

    def then() -> int:
        if others != "none":
            other()
        if others == "a conflict":  # the change itself was not made
            _, told = server.tables["db.t"]
            del told["schemas"][-2]
            told["schemas"][-1]["fields"] = [
                one for one in told["schemas"][-1]["fields"] if one["name"] != "more"
            ]
        return 409

    table = rest.create(location=rest.folder.as_uri())
    server.then = then
    refused: Any = {
        "none": nullcontext(),
        "one on top": unknown(),
        "a conflict": pytest.raises(CommitFailedException, match="Nothing was committed"),
    }
    with refused[others]:
        table.update_schema().add_column("more", LongType()).commit()
    has = set(rest.open().schema().column_names)
    assert ("more" in has, "other" in has) == (others != "a conflict", others != "none")


def unknown() -> Any:
    return pytest.raises(CommitStateUnknownException, match="it is not known whether")


def other_kek(rest: Place, by: str) -> Any:
    kek = _keys.EncryptedKey("other", rest.kms.wrap_key(b"0" * 16, by), by, {})
    return kek.json()


def test_rest_keys_that_change_before_the_commit(server: RestCatalogDouble, rest: Place) -> None:
    table = rest.create(location=rest.folder.as_uri())
    before = files(rest.folder)
    _, told = server.tables["db.t"]
    kek = told["encryption-keys"]
    for keys, key_id in (([other_kek(rest, "k1")], "k1"), ([*kek, other_kek(rest, "k2")], "k2")):
        told["encryption-keys"], told["properties"]["encryption.key-id"] = keys, key_id
        words = r"^Table lake\.db\.t has been changed since .*: its keys are others$"
        with pytest.raises(CommitFailedException, match=words):
            table.append(rows(1))
        if key_id == "k2":
            with (
                pytest.raises(CommitFailedException, match="been changed"),
                table.update_schema() as it,
            ):
                it.add_column("more", LongType())
    told["encryption-keys"], told["properties"]["encryption.key-id"] = kek, "k1"
    table = rest.open(properties={"encryption.allowed-key-ids": "k1"})
    told["encryption-keys"] = [*kek, other_kek(rest, "k2")]
    with pytest.raises(errors.AccessDeniedError, match="allows only k1"):
        table.append(rows(1))
    told["encryption-keys"] = kek
    transaction = table.transaction()
    transaction.append(rows(1))
    server.answer = lambda path: (503, {})  # type: ignore[method-assign]
    words = "(?s)could not be asked for it before the commit: .*503.*Nothing was committed"
    with pytest.raises(errors.IcebergCryptoError, match=words):
        transaction.commit_transaction()
    assert files(rest.folder) == before


@pytest.mark.parametrize(
    ("keys", "key_id", "kind", "words"),
    [
        ("gone", "k1", errors.IcebergCryptoError, "was committed, and its KEK .* is not among"),
        ("kept", None, CommitStateUnknownException, "was committed as snapshot .*key-id is gone"),
        ("kept", "k2", errors.IcebergCryptoError, "was committed, and its KEK .* keys of 'k2'"),
        ("more", "k1", CommitStateUnknownException, "was committed as snapshot .* allows only k1"),
    ],
)
def test_rest_keys_that_change_during_the_commit(
    server: RestCatalogDouble,
    rest: Place,
    keys: str,
    key_id: str | None,
    kind: type[Exception],
    words: str,
) -> None:
    def first() -> None:
        _, told = server.tables["db.t"]
        told["properties"]["encryption.key-id"] = key_id
        if key_id is None:
            del told["properties"]["encryption.key-id"]
        kept = [] if keys == "gone" else told["encryption-keys"]
        told["encryption-keys"] = kept + [other_kek(rest, "k2")] * (keys == "more")

    rest.create(location=rest.folder.as_uri())
    table = rest.open(properties={"encryption.allowed-key-ids": "k1"})
    server.first = first
    with pytest.raises(kind, match=words) as raised:
        table.append(rows(1))
    assert "Nothing was" not in str(raised.value)
    assert len(server.tables["db.t"][1]["snapshots"]) == 1
