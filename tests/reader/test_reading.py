"""What the reader reads: formats, key lengths, types, deletes, partitions, evolution, scans of PyIceberg's API."""

from __future__ import annotations

import datetime as dt
import io
import pickle
import random
import re
from decimal import Decimal
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import polars as pl
import pyarrow as pa
import pytest
from harness.encrypted_tables import EQUALITY, OwnKms, Writer
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import VoidTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _ags1, _parquet, _plan, open_table
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import DecryptedFile
from pyspark_iceberg_crypto.reader._rows import Rows, _Ahead
from pyspark_iceberg_crypto.reader._table import PlaintextTable

ID = NestedField(1, "id", LongType(), required=False)
PART = NestedField(2, "part", StringType(), required=False)
NOTE = NestedField(3, "note", StringType(), required=False)
SCHEMA = Schema(ID, PART, NOTE)
ROWS = [
    {"id": 1, "part": "p", "note": "one"},
    {"id": 2, "part": "p", "note": None},
    {"id": 3, "part": "p", "note": "three"},
]


def opened(writer: Writer, **options: Any) -> Table:
    return open_table(writer.metadata.as_uri(), kms=writer.kms, **options)


def rows(table: Table, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
    return table.scan(*arguments, **options).to_arrow().sort_by("id").to_pylist()


def ids(table: Table, *arguments: Any, **options: Any) -> list[int]:
    return [one["id"] for one in rows(table, *arguments, **options)]


@pytest.mark.parametrize("form", ["parquet", "avro"])
@pytest.mark.parametrize("bits", [128, 192, 256])
def test_each_key_length_of_each_format(tmp_path: Path, bits: int, form: str) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, bits=bits, form=form)
    writer.append(ROWS)
    assert rows(opened(writer)) == ROWS
    assert b"three" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.*"))


EVERY = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "b", BooleanType(), required=False),
    NestedField(3, "i", IntegerType(), required=False),
    NestedField(4, "f", FloatType(), required=False),
    NestedField(5, "d", DoubleType(), required=False),
    NestedField(6, "dec", DecimalType(20, 4), required=False),
    NestedField(7, "day", DateType(), required=False),
    NestedField(8, "t", TimeType(), required=False),
    NestedField(9, "ts", TimestampType(), required=False),
    NestedField(10, "tz", TimestamptzType(), required=False),
    NestedField(11, "s", StringType(), required=False),
    NestedField(12, "u", UUIDType(), required=False),
    NestedField(13, "fix", FixedType(3), required=False),
    NestedField(14, "bin", BinaryType(), required=False),
    NestedField(15, "l", ListType(20, IntegerType(), element_required=False), required=False),
    NestedField(16, "m", MapType(21, StringType(), 22, LongType(), True), required=False),
    NestedField(17, "k", MapType(23, IntegerType(), 24, StringType(), False), required=False),
    NestedField(
        18,
        "st",
        StructType(
            NestedField(25, "x", IntegerType(), required=False),
            NestedField(
                26,
                "y",
                ListType(27, StructType(NestedField(28, "z", DecimalType(5, 2), required=False))),
                required=False,
            ),
        ),
        required=False,
    ),
)
ALL_TYPES: dict[str, Any] = {
    "id": 1,
    "b": True,
    "i": -(2**31),
    "f": 0.5,
    "d": -1.25,
    "dec": Decimal("1234567890123456.7891"),
    "day": dt.date(1969, 7, 20),
    "t": dt.time(23, 59, 59, 999_999),
    "ts": dt.datetime(2026, 1, 2, 3, 4, 5, 678_901),
    "tz": dt.datetime(1969, 1, 2, 3, 4, 5, 678_901, dt.timezone.utc),
    "s": "ü",
    "u": UUID("12345678-1234-5678-1234-567812345678"),
    "fix": b"abc",
    "bin": b"\x00\xff",
    "l": [1, None, 3],
    "m": [("a", 1), ("b", 2)],
    "k": [(1, "x"), (2, None)],
    "st": {"x": 1, "y": [{"z": Decimal("1.50")}, {"z": None}]},
}


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_every_type(tmp_path: Path, form: str) -> None:
    given = ALL_TYPES
    if form == "avro":  # as fastavro takes them
        pairs = [{"key": key, "value": value} for key, value in given["k"]]
        given = given | {"m": dict(given["m"]), "k": pairs, "u": given["u"].bytes}
    none = {"id": 2} | dict.fromkeys(list(given)[1:])
    writer = Writer(tmp_path / "t", EVERY, form=form)
    writer.append([given, none])
    first, second = rows(opened(writer))
    assert first == ALL_TYPES
    assert second == none
    assert ids(opened(writer), "dec = 1234567890123456.7891 and s = 'ü'") == [1]


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_position_deletes(tmp_path: Path, form: str) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    first = writer.append(ROWS)
    writer.append([{"id": 4, "part": "p", "note": None}])
    writer.commit(writer.positions(first, [0, 2], form=form))
    table = opened(writer)
    assert ids(table) == [2, 4]
    assert ids(table, "id >= 3") == [4]
    assert table.scan().count() == 2
    assert len(rows(table, limit=1)) == 1


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_equality_deletes_as_flink_writes_them(tmp_path: Path, form: str) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, form=form)
    key = Schema(ID, NOTE)
    writer.append(ROWS)
    old = {"id": 2, "note": None}
    same = writer.file([{"id": 2, "part": "q", "note": None}])  # of the commit that deletes the old
    gone = writer.file([old, {"id": 3, "note": "another"}], EQUALITY, schema=key, equality=[1, 3])
    writer.commit(same, gone)
    table = opened(writer)
    assert rows(table) == [ROWS[0], {"id": 2, "part": "q", "note": None}, ROWS[2]]
    assert table.scan().count() == 3
    assert [one["note"] for one in table.scan(selected_fields=("note",)).to_arrow().to_pylist()]
    writer.commit(writer.file([{"id": 3}], EQUALITY, schema=Schema(ID), equality=[1]))
    assert ids(opened(writer)) == [1, 2]
    assert ids(opened(writer), "id > 1") == [2]


def test_an_equality_delete_is_not_pruned_by_columns_that_do_not_count(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append([{"id": 1, "part": "z", "note": None}, {"id": 2, "part": "z", "note": None}])
    row = {"id": 1, "part": "a", "note": None}  # as of a changelog: only id counts
    writer.commit(writer.file([row], EQUALITY, equality=[1]))
    assert ids(opened(writer), "part = 'z'") == [2]


def test_equality_deletes_are_of_their_partition_or_of_all(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, partition="part")
    p = writer.file([{"id": 1, "part": "p"}, {"id": 2, "part": "p"}], partition="p")
    q = writer.file([{"id": 1, "part": "q"}, {"id": 2, "part": "q"}], partition="q")
    writer.commit(p, q)
    of_p = writer.file([{"id": 1}], EQUALITY, schema=Schema(ID), equality=[1], partition="p")
    writer.commit(of_p)
    assert [(o["id"], o["part"]) for o in rows(opened(writer), "id = 1")] == [(1, "q")]
    writer.repartition(None)
    writer.commit(writer.file([{"id": 2}], EQUALITY, schema=Schema(ID), equality=[1]))
    assert rows(opened(writer)) == [{"id": 1, "part": "q", "note": None}]
    writer.repartition("note")
    writer.append([{"id": 5, "part": "p", "note": "n"}], partition="n")
    assert ids(opened(writer), "note = 'n'") == [5]
    assert len(list(opened(writer).scan("id < 3 and part > 'p'").plan_files())) == 1  # by partition


def test_columns_that_came_went_and_were_renamed(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    more = NestedField(4, "more", IntegerType(), required=True, initial_default=7)
    label = NestedField(3, "label", StringType(), required=False)
    writer.evolve(Schema(ID, label, more))
    writer.append([{"id": 4, "label": "four", "more": 1}])
    table = opened(writer)
    assert rows(table, "id != 2") == [
        {"id": 1, "label": "one", "more": 7},
        {"id": 3, "label": "three", "more": 7},
        {"id": 4, "label": "four", "more": 1},
    ]
    assert ids(table, "more = 7 and label is null") == [2]
    writer.commit(writer.file([{"more": 7}], EQUALITY, schema=Schema(more), equality=[4]))
    assert ids(opened(writer)) == [4]


def test_filters_of_columns_that_a_file_lacks(tmp_path: Path) -> None:
    """They mean what they mean of a file that has the columns, whatever is asked for: defaults, nulls, partitions."""
    a = NestedField(7, "a", LongType(), required=False)
    b = NestedField(8, "b", LongType(), required=False, initial_default=7)
    kinds: tuple[tuple[str, Any, Any], ...] = (
        ("d", DateType(), "2024-01-01"),
        ("t", TimestampType(), "2024-01-01T00:00:00"),
        ("n", DecimalType(9, 2), "1.50"),
        ("s", StringType(), "ab"),
        ("x", LongType(), None),
        ("y", DoubleType(), None),
    )
    added = (
        NestedField(10 + at, name, kind, required=False, initial_default=default)
        for at, (name, kind, default) in enumerate(kinds)
    )
    before, after = (NestedField(9, "st", StructType(*of), required=False) for of in ((a,), (a, b)))
    writer = Writer(tmp_path / "t", Schema(ID, PART, before), partition="part", hadoop=True)
    old = [{"id": 1, "st": {"a": 1}}, {"id": 2, "st": None}]
    writer.append(old, schema=Schema(ID, before), partition="p")  # as Hive's files are
    writer.evolve(Schema(ID, PART, after, *added))
    new: dict[str, Any] = {"id": 3, "part": "q", "st": {"a": 1, "b": 7}, "d": dt.date(2024, 1, 1)}
    last = {"id": 4, "part": "q", "st": {"a": 1, "b": 8}, "s": "b", "x": 6, "y": 6.0}
    writer.append([new, last], partition="q")
    table = opened(writer)
    every = table.scan().to_arrow()
    assert every.sort_by("id").to_pylist()[0]["n"] == Decimal("1.50")
    for condition in (
        *(
            "d = '2024-01-01'",
            "d < '2025-01-01'",
            "not d > '2023-01-01'",
            "t = '2024-01-01T00:00:00'",
        ),
        *(
            "n >= 1.50",
            "s not like 'b%'",
            "s in ('ab', 'c')",
            "x != 5",
            "not x > 50",
            "x not in (5, 7)",
        ),
        *(
            "x is null",
            "x is null and id < 2",
            "y is not nan",
            "not y is nan",
            "y is nan or id = 2",
        ),
        *(
            "st.b = 7",
            "st.b is null",
            "st.b != 9",
            "part = 'p'",
            "part != 'p'",
            "part = 'p' and id > 1",
        ),
    ):
        bound = bind(table.schema(), parse(condition), case_sensitive=True)
        meant = every.filter(expression_to_pyarrow(bound, table.schema()))["id"].to_pylist()
        assert table.scan(condition).count() == len(meant), condition
        assert ids(table, condition, selected_fields=("id",)) == sorted(meant), condition
    for condition, shown in (("st.b = 7 or x = 6", [1, 3, 4]), ("st.b is null", [2])):
        assert ids(table, condition) == shown
        assert len(table.scan(condition, selected_fields=("st.a",)).to_arrow()) == len(shown)
    parts = table.scan(selected_fields=("id", "st.b")).to_arrow().sort_by("id")["st"].to_pylist()
    assert parts == [{"b": 7}, None, {"b": 7}, {"b": 8}]
    table = open_table(tmp_path / "t", kms=writer.kms)
    table.delete("x != 5 or st.b is null")
    assert ids(table) == [1, 3]


def test_the_ways_to_read_that_pyiceberg_has(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    writer.append([{"id": 4, "part": "q", "note": "four"}])
    writer.commit(writer.file([{"id": 5, "part": "q", "note": "five"}]), branch="work")
    table = opened(writer)
    first, second, third = (one.snapshot_id for one in table.snapshots())
    scan = table.scan("id > 1", selected_fields=("id",))
    assert sorted(scan.to_pandas()["id"]) == [2, 3, 4]
    assert sorted(scan.to_polars()["id"]) == [2, 3, 4]
    assert scan.to_duckdb("t").execute("SELECT sum(id) FROM t").fetchone() == (9,)
    assert sum(len(one) for one in scan.to_arrow_batch_reader()) == 3
    assert scan.filter("id < 4").to_arrow()["id"].to_pylist() == [2, 3]
    assert len(table.scan(limit=2).to_arrow()) == 2
    assert ids(table, snapshot_id=first) == [1, 2, 3]
    assert table.scan().use_ref("work").count() == 5
    appended = table.incremental_append_scan(from_snapshot_id_exclusive=first)
    assert appended.to_arrow()["id"].to_pylist() == [4]
    assert sum(len(one) for one in appended.to_arrow_batch_reader()) == 1
    lazy = table.to_polars().filter(pl.col("id") >= 3).select("note")
    assert sorted(lazy.collect()["note"]) == ["four", "three"]
    assert table.to_polars().head(1).collect().height == 1
    encoded = table.scan().to_arrow(dictionary_columns=("part",))
    assert str(encoded.schema.field("part").type).startswith("dictionary")
    assert third == table.refs()["work"].snapshot_id
    assert second == table.current_snapshot().snapshot_id


def test_a_refreshed_table_has_the_rows_that_came(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "warehouse" / "db" / "t", SCHEMA, hadoop=True)
    writer.append(ROWS)
    table = open_table(tmp_path / "warehouse", "db.t", kms=writer.kms)
    writer.append([{"id": 4}])
    assert ids(table) == [1, 2, 3]
    assert ids(table.refresh()) == [1, 2, 3, 4]
    assert ids(open_table(writer.folder, kms=writer.kms)) == [1, 2, 3, 4]


def test_a_hint_that_is_behind_or_gone_is_no_older_table(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    for number in (1, 2, 3):
        writer.append([{"id": number}])
    hint = writer.folder / "metadata" / "version-hint.text"
    for text in ("1", "nothing", None):
        hint.write_text(text) if text else hint.unlink()
        assert ids(open_table(writer.folder, kms=writer.kms)) == [1, 2, 3]


def test_the_kms_is_asked_once_for_a_kek(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    table = opened(writer)
    table.scan().to_arrow()
    table.scan("id = 1").to_arrow()
    assert writer.kms.asked == ["k1"]


def test_inspecting_shows_no_keys(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    file = writer.append(ROWS)
    writer.commit(writer.positions(file, [0]))
    table = opened(writer)
    inspect = table.inspect
    assert set(inspect.files()["key_metadata"].to_pylist()) == {None}
    assert set(inspect.all_files()["key_metadata"].to_pylist()) == {None}
    assert set(inspect.all_manifests()["key_metadata"].to_pylist()) == {None}
    assert {o["key_metadata"] for o in inspect.entries()["data_file"].to_pylist()} == {None}
    assert inspect.partitions()["record_count"].to_pylist() == [3]
    assert len(inspect.manifests()) == len(inspect.snapshots()) == len(inspect.history()) == 2
    task = next(iter(table.scan().plan_files()))
    manifest = table.current_snapshot().manifests(table.io)[0]
    assert file.key is not None
    assert str(file.key) not in f"{task!r} {manifest!r} {table!r} {vars(table.io)!r}"


def test_keys_go_with_what_lists_them(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    table = opened(writer)
    tasks, others = table.scan().plan_files(), table.scan().plan_files()
    location = next(iter(tasks)).file.file_path
    del others  # the keys of the tasks that are left stay
    assert table.io.new_input(location).exists()
    del tasks
    with pytest.raises(errors.NotSupportedError, match="its key is in a manifest"):
        table.io.new_input(location)


def test_no_key_is_pickled(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    table = opened(writer)
    task = next(iter(table.scan().plan_files()))
    manifest = table.current_snapshot().manifests(table.io)[0]
    for one in (
        table,
        table.io,
        table.scan(),
        task,
        manifest,
        table.io.new_input(task.file.file_path),
    ):
        with pytest.raises(errors.NotSupportedError, match="is not pickled"):
            pickle.dumps(one)


def test_pickled_tasks_have_the_keys_of_their_files_where_that_is_allowed(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, partition="part")
    gone = writer.file([{"id": 2}], EQUALITY, schema=Schema(ID), equality=[1], partition="p")
    writer.commit(writer.file([{"id": i, "part": "p"} for i in (1, 2, 3)], partition="p"))
    writer.commit(writer.positions(writer.append([{"id": 4}, {"id": 5}], partition="q"), [0]), gone)
    logins = (
        *("encryption.kms.vault.token", "uri", "credential", "token", "header.Authorization"),
        *("glue.secret-access-key", "dynamodb.session-token", "jdbc.password", "ssl", "unknown"),
    )
    kept = {"s3.region": "r", "client.access-key-id": "i", "DEFAULT_SCHEME": "file"}
    secret = {**dict.fromkeys(logins, "secret"), **kept}
    table = open_table(writer.location, kms=writer.kms, properties=secret, pickle_file_keys=True)
    scan = table.scan("id > 1", selected_fields=("id",))
    tasks = list(scan.plan_files())
    sent = pickle.dumps([scan, tasks])
    assert b"secret" not in sent
    assert writer.kek not in sent
    there, its_tasks = pickle.loads(pickle.dumps(pickle.loads(sent)))
    del scan, tasks
    found = [there.read_task(one)["id"].to_pylist() for one in its_tasks]
    assert sorted(found) == [[3], [5]]
    assert writer.kms.asked == ["k1"]
    assert there.io.properties == kept
    with pytest.raises(errors.NotSupportedError, match="is not planned here"):
        there.plan_files()
    with pytest.raises(errors.NotSupportedError, match="is not pickled"):
        pickle.dumps(table)
    path = Path(its_tasks[0].file.file_path.removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(errors.TamperedError, match=re.escape(writer.location)):
        there.read_task(its_tasks[0])


def test_what_pyiceberg_would_write_itself_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    writer.append(ROWS)
    table = open_table(tmp_path / "t", kms=writer.kms)
    some = table.scan().to_arrow()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    for attempt in (
        lambda: table.dynamic_partition_overwrite(some),
        lambda: table.upsert(some, ["id"]),
        lambda: table.add_files(["x"]),
        lambda: table.update_spec(),
        lambda: table.update_sort_order(),
        lambda: table.update_statistics(),
        lambda: table.manage_snapshots(),
        lambda: table.maintenance,
        lambda: table.transaction().add_files(["x"]),
        lambda: table.transaction().set_properties(a="b"),
        lambda: table.transaction().update_snapshot().fast_append().append_data_file(DataFile()),
        lambda: Transaction(table).append(some),
        lambda: Transaction(table, autocommit=True).set_properties(a="b"),
        lambda: table.io.new_output(f"{tmp_path}/x"),
        lambda: table.io.delete(table.metadata_location),
    ):
        with pytest.raises(errors.NotSupportedError, match="encrypted table is not made in Python"):
            attempt()
    with pytest.raises(errors.NotSupportedError):
        Transaction(table).delete("id = 1")
    for attempt in (table.to_daft, table.to_bodo, table.__datafusion_table_provider__):
        with pytest.raises(errors.NotSupportedError, match="without their keys"):
            attempt()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_row_lineage_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    with pytest.raises(errors.NotSupportedError, match="_row_id: row lineage"):
        opened(writer).scan(selected_fields=("id", "_row_id")).to_arrow()


def test_partitions_of_nan_are_one() -> None:
    files = []
    for _ in range(2):
        file = DataFile.from_args(content=DataFileContent.DATA, partition=Record(float("nan"), 1))
        file.spec_id = 0
        files.append(file)
    assert _plan._partition(files[0]) == _plan._partition(files[1])
    assert hash(_plan._hashed(files[0])) == hash(_plan._hashed(files[1]))
    assert _plan._hashed(files[0]) == _plan._hashed(files[1])


def test_a_spec_of_void_fields_has_no_partitions() -> None:
    """Its equality deletes apply to data files of all specs."""
    void = PartitionSpec(PartitionField(1, 1000, VoidTransform(), "part"), spec_id=1)
    deletes = _plan._EqualityDeletes(SimpleNamespace(specs=lambda: {1: void}))  # type: ignore[arg-type]
    deleted = DataFile.from_args(content=DataFileContent.EQUALITY_DELETES, partition=Record(None))
    deleted.spec_id = 1
    deletes.add(ManifestEntry.from_args(sequence_number=2, data_file=deleted))
    data = DataFile.from_args(content=DataFileContent.DATA, partition=Record("p"))
    data.spec_id = 0
    assert deletes.of(1, data) == [deleted]
    assert deletes.of(2, data) == []


def test_a_plaintext_table_is_pyicebergs_own(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, key_id=None)
    writer.append(ROWS)
    table = open_table(writer.location)
    assert type(table) is PlaintextTable
    assert rows(table) == ROWS
    with pytest.raises(errors.PlaintextFoundError, match="plaintext-tables=refuse"):
        open_table(writer.location, properties={"encryption.plaintext-tables": "refuse"})


def test_a_table_larger_than_one_block_and_one_batch(tmp_path: Path) -> None:
    for form in ("parquet", "avro"):
        writer = Writer(tmp_path / form, SCHEMA, form=form)
        many = [
            {"id": i, "part": str(i % 7), "note": sha256(b"%d" % i).hexdigest()}
            for i in range(40_000)
        ]
        file = writer.append(many)
        assert file.length > 1 << 20 or form == "parquet"
        writer.commit(writer.positions(file, [0, 20_000, 39_999]))
        found = opened(writer).scan("part = '1'").to_arrow()
        assert len(found) == len([i for i in range(40_000) if i % 7 == 1]) - sum(
            i % 7 == 1 for i in (0, 20_000, 39_999)
        )


def test_who_reads_a_stream_on_gets_it_by_few_requests() -> None:
    plaintext = random.Random(1).randbytes(20 * _ags1.BLOCK + 5)
    stored, key = _ags1.encrypt(plaintext, 16)
    requests: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            requests.append(size or 0)
            return super().read(size)

    file = ExpectedFile("t", "memory", len(stored))
    with io.BufferedReader(_ags1.DecryptedStream(Counted(stored), key, file), 1000) as stream:
        assert b"".join(iter(partial(stream.read, 100_000), b"")) == plaintext
        assert len(requests) == 5  # of 1, 2, 4, 8 and the last 6 blocks
        requests.clear()
        for at in (9, 3, 12, 2):
            stream.seek(at * _ags1.BLOCK + 7)
            assert stream.read(2) == plaintext[stream.tell() - 2 : stream.tell()]
        assert requests == [_ags1.BLOCK + _ags1.OVERHEAD] * 4


def test_batches_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is not taken yet, there is a part of each file, and row groups that are not read."""
    monkeypatch.setattr(Rows, "_ahead", _Ahead(part=1, files=0))
    monkeypatch.setattr(_parquet, "_PART", 1)
    writer = Writer(tmp_path / "t", Schema(ID))
    numbers = pa.table({"id": pa.array(range(1000), pa.int64())})
    for _ in range(3):
        writer.commit(writer.parquet(numbers, row_group=100))
    opened_files: list[str] = []
    monkeypatch.setattr(
        DecryptedFile,
        "_open",
        lambda file, real=DecryptedFile._open: opened_files.append(file.location) or real(file),
    )
    table = opened(writer)
    scan = table.scan("id >= 250")
    assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted([*range(250, 1000)] * 3)
    opened_files.clear()
    reader = scan.to_arrow_batch_reader()
    first = reader.read_next_batch()
    assert first["id"].to_pylist() == [*range(250, 300)]
    assert len({one for one in opened_files if one.endswith(".parquet")}) == 1
    rest = reader.read_all()
    assert len(first) + len(rest) == 3 * 750
    assert len(table.scan("id >= 250", limit=60).to_arrow()) == 60


def test_a_kms_of_the_users_own_needs_two_methods(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA)
    writer.append(ROWS)
    own = OwnKms(authentic=False)
    with pytest.raises(errors.ConfigurationError, match="cannot be authenticated"):
        open_table(writer.location, kms=own)
    with pytest.raises(errors.ConfigurationError, match="no KMS was given"):
        open_table(writer.location)
    unchecked = {"encryption.metadata-authentication": "off"}
    assert rows(open_table(writer.location, kms=own, properties=unchecked)) == ROWS
