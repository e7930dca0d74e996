"""Tables of each kind of catalog: what vouches for their metadata there, and how it is read."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.stub import Stubber
from doubles.rest_catalog import RestCatalogDouble
from harness.encrypted_tables import Writer
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField
from sqlalchemy import text

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.kms import BY_TYPE
from pyspark_iceberg_crypto.kms._settings import settings
from pyspark_iceberg_crypto.reader import _load, open_table, table_readers, verify_table
from pyspark_iceberg_crypto.reader._table import PlaintextTable
from pyspark_iceberg_crypto.reader.proof import _opened
from reader.metastore import entry, hive

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


def table(folder: Path, of: Table | None = None, **options: Any) -> Writer:
    """A table of two rows, or what another one becomes when it is encrypted in place."""
    writer = Writer(folder, SCHEMA, **options)
    if of is not None:
        writer.document["table-uuid"] = str(of.metadata.table_uuid)
    writer.append([{"id": 1}, {"id": 2}])
    return writer


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


# ---- SQL


@pytest.fixture
def sql(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog


def test_sql(sql: SqlCatalog, tmp_path: Path) -> None:
    writer = table(tmp_path / "t")
    sql.register_table("db.t", writer.location)
    opened = open_table(sql, "db.t", kms=writer.kms)
    assert ids(opened) == [1, 2]
    assert opened.name() == ("db", "t")
    old = writer.location
    writer.append([{"id": 3}])
    with sql.engine.begin() as connection:
        connection.execute(
            text("UPDATE iceberg_tables SET metadata_location = :new"), {"new": writer.location}
        )
    assert ids(opened) == [1, 2]
    assert ids(opened.refresh()) == [1, 2, 3]
    writer.metadata.write_bytes(writer.metadata.read_bytes().replace(b"main", b"mine"))
    with pytest.raises(errors.TamperedError, match=f"Table lake.db.t: .*MAC.*{writer.location}"):
        opened.refresh()
    assert old != writer.location
    assert ids(opened) == [1, 2, 3]  # as it was loaded


def test_a_plaintext_table_that_gets_encrypted(
    sql: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that began before leaves nothing, or says what; files that were added stay."""
    writer = table(tmp_path / "t", sql.create_table("db.t", SCHEMA))
    opened = open_table(sql, "db.t", kms=writer.kms)
    written_before = str(tmp_path / "before.parquet")
    pq.write_table(rows(6), written_before)
    opened.append(rows(7))
    assert ids(opened.refresh()) == [7]
    before = {*tmp_path.rglob("*")}
    begun, hindered = opened.transaction(), open_table(sql, "db.t").transaction()
    for each in (begun, hindered):
        each.append(rows(8))
        each.overwrite(rows(9), "id = 8")
        each.add_files([written_before])
    with sql.engine.begin() as connection:
        connection.execute(
            text("UPDATE iceberg_tables SET metadata_location = :new"), {"new": writer.location}
        )
    for change in (
        begun.commit_transaction,
        lambda: opened.append(rows(8)),
        lambda: opened.delete("id = 7"),
        lambda: opened.update_schema().add_column("n", LongType()).commit(),
        opened.refresh,
    ):
        with pytest.raises(
            errors.NotSupportedError, match=r"Table lake\.db\.t was encrypted since"
        ):
            change()
    with monkeypatch.context() as patched, pytest.raises(errors.NotSupportedError) as refused:
        patched.setattr(type(hindered.table.io), "delete", None)
        hindered.commit_transaction()
    left = {*tmp_path.rglob("*")} - before
    assert len(left) > 4 and all(str(one) in refused.value.hint for one in left)
    assert written_before not in refused.value.hint


@pytest.mark.parametrize("words", ["encrypted", "dropped or renamed"])
@pytest.mark.parametrize("is_asked", [False, True])
def test_files_of_a_commit_that_was_made_stay(
    sql: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, is_asked: bool
) -> None:
    """Also if the same transaction's next commit is refused, by the database or before it is asked."""

    def become_another() -> None:
        location = writer.location
        if words != "encrypted":
            sql.rename_table("db.t", "db.old")
            location = sql.create_table("db.t", SCHEMA).metadata_location
        with sql.engine.begin() as connection:
            statement = "UPDATE iceberg_tables SET metadata_location = :new WHERE table_name = 't'"
            connection.execute(text(statement), {"new": location})

    def commit_table(*given: Any) -> Any:
        monkeypatch.undo()
        become_another()
        return sql.commit_table(*given)

    writer = table(tmp_path / "t", sql.create_table("db.t", SCHEMA))
    transaction = open_table(sql, "db.t", kms=writer.kms).transaction()
    for each in (1, 2):
        transaction.append(rows(each))
        transaction.commit_transaction()
    location = sql.load_table("db.t").metadata_location
    before = {*tmp_path.rglob("*.parquet"), *tmp_path.rglob("*.avro")}
    transaction.append(rows(3))
    if is_asked:
        monkeypatch.setattr(sql, "commit_table", commit_table)
    else:
        become_another()
    with pytest.raises(errors.NotSupportedError, match=rf"lake\.db\.t was {words} since"):
        transaction.commit_transaction()
    assert {*tmp_path.rglob("*.parquet"), *tmp_path.rglob("*.avro")} == before
    assert ids(sql.register_table("db.before", location)) == [1, 2]


def test_a_plaintext_table_whose_name_an_encrypted_one_got(sql: SqlCatalog, tmp_path: Path) -> None:
    """Without a KMS, nobody looks at which table that is."""
    sql.create_table("db.t", SCHEMA)
    opened = open_table(sql, "db.t")
    sql.rename_table("db.t", "db.old")
    sql.register_table("db.t", table(tmp_path / "t").location)
    for change in (opened.refresh, lambda: opened.append(rows(1))):
        with pytest.raises(
            errors.NotSupportedError, match="since it was opened, or is another one now"
        ):
            change()


def test_a_plaintext_table_without_a_uuid(sql: SqlCatalog) -> None:
    """As clients of format version 1 could write it: PyIceberg makes up another one each time."""
    made = sql.create_table("db.t", SCHEMA, properties={"format-version": "1"})
    metadata = Path(made.metadata_location.removeprefix("file://"))
    document = json.loads(metadata.read_text())
    del document["table-uuid"]
    metadata.write_text(json.dumps(document))
    opened = open_table(sql, "db.t")
    opened.transaction()
    assert ids(opened.refresh()) == []


def test_a_plaintext_table_that_is_dropped(sql: SqlCatalog) -> None:
    sql.create_table("db.t", SCHEMA)
    opened = open_table(sql, "db.t")
    sql.drop_table("db.t")
    for change in (opened.refresh, lambda: opened.append(rows(1))):
        with pytest.raises(errors.TableNotFoundError):
            change()


@pytest.mark.parametrize("kind", ["sql", "path", "rest"])
@pytest.mark.parametrize("is_current", [True, False])
def test_a_table_with_types_that_pyiceberg_does_not_know(
    sql: SqlCatalog, server: RestCatalogDouble, tmp_path: Path, kind: str, is_current: bool
) -> None:
    """Rows are not read; what only looks at metadata and files works."""
    writer = table(tmp_path / "t", hadoop=kind == "path", signed=kind != "rest")
    types = ["variant", {"type": "list", "element-id": 9, "element": "geometry(srid:4326)"}]
    fields = [{"id": 7 + i, "name": f"n{i}", "required": False, "type": types[i]} for i in (0, 1)]
    if is_current:
        writer.document["schemas"][0]["fields"] += fields
    else:
        writer.document["schemas"].append({"type": "struct", "schema-id": 1, "fields": fields})
    writer.document["last-column-id"] = 9
    writer.write()
    catalog: Any = sql if kind == "sql" else tmp_path
    name = "t" if kind == "path" else "db.t"
    if kind == "sql":
        _load._pyiceberg.register(sql, ("db", "t"), writer.location)
    if kind == "rest":
        server.tables[name] = (writer.location, writer.document)
        catalog = RestCatalog("lake", uri=server.url)
    with pytest.raises(
        errors.NotSupportedError, match=r"type geometry\(srid:4326\), variant, which.*\n.*Use Spark"
    ):
        open_table(catalog, name, kms=writer.kms)
    report = verify_table(catalog, name, kms=writer.kms, deep=True)
    assert report.ok and len(report.files) == 3
    assert table_readers(catalog, name, kms=writer.kms).readers


@pytest.mark.parametrize("kind", ["sql", "path", "rest"])
@pytest.mark.parametrize("key_id", ["k1", None])
def test_a_table_does_not_choose_how_its_files_are_read(
    sql: SqlCatalog, server: RestCatalogDouble, tmp_path: Path, kind: str, key_id: str | None
) -> None:
    """Who may set its properties would get the reader's login to the storage."""
    writer = table(tmp_path / "t", key_id=key_id, hadoop=kind == "path", signed=kind != "rest")
    chosen = {"py-io-impl": "stranger.FileIO", "s3.endpoint": "http://127.0.0.1:1"}
    writer.document["properties"] |= chosen
    writer.append([{"id": 3}])
    catalog: Any = sql if kind == "sql" else tmp_path
    name = "t" if kind == "path" else "db.t"
    properties = {"s3.region": "r"} if kind == "path" else {}
    if kind == "sql":
        _load._pyiceberg.register(sql, ("db", "t"), writer.location)
    if kind == "rest":
        server.tables[name] = (writer.location, writer.document)
        server.config = {"s3.region": "r"}
        catalog = RestCatalog("lake", uri=server.url)
    opened = open_table(catalog, name, kms=writer.kms, properties=properties)
    assert chosen.items() <= opened.properties.items()
    stored = getattr(opened, "stored", opened.io).properties
    assert not chosen.keys() & stored.keys()
    assert stored.get("s3.region") == (None if kind == "sql" else "r")
    if key_id is not None:
        assert ids(opened) == [1, 2, 3]
        assert verify_table(catalog, name, kms=writer.kms, properties=properties).ok


def test_a_plaintext_table_is_told_to_be_one(sql: SqlCatalog, tmp_path: Path) -> None:
    writer = table(tmp_path / "t", key_id=None)
    sql.register_table("db.t", writer.location)
    report = verify_table(sql, "db.t")
    assert report.metadata_location == writer.location
    assert (report.exit_code, {one["code"] for one in report.to_dict()["problems"]}) == (
        1,
        {"plaintext"},
    )


def test_the_metadata_file_is_read_once(
    sql: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = table(tmp_path / "t")
    sql.register_table("db.t", writer.location)
    read: list[str] = []
    stock = _load.Source._read
    monkeypatch.setattr(
        _load.Source, "_read", lambda self, *given: read.append(given[1]) or stock(self, *given)
    )
    monkeypatch.setattr("pyiceberg.serializers.FromInputFile.table_metadata", None)
    open_table(sql, "db.t", kms=writer.kms)
    assert read == [writer.location]


def test_a_table_that_is_not_there(sql: SqlCatalog, tmp_path: Path) -> None:
    with pytest.raises(
        errors.TableNotFoundError, match="There is no table db.none in catalog lake"
    ):
        open_table(sql, "db.none")
    with pytest.raises(errors.TableNotFoundError, match="There is no table in"):
        open_table(tmp_path, "db.none")
    with pytest.raises(errors.ConfigurationError, match="needs a table's name"):
        open_table(sql)


@pytest.mark.parametrize("io", ["pyarrow.PyArrowFileIO", "fsspec.FsspecFileIO"])
def test_a_hadoop_table_without_a_hint(tmp_path: Path, io: str) -> None:
    """Java's HadoopTableOperations takes the highest version that there is."""
    writer = table(tmp_path / "t", hadoop=True)
    while writer.version < 11:
        writer.write()
    for path in writer.metadata.parent.glob("v[1-9].metadata.json"):
        path.unlink()
    properties = {"py-io-impl": f"pyiceberg.io.{io}"}
    hint = writer.metadata.with_name("version-hint.text")
    for text_of_hint in ("what", ""):
        hint.write_text(text_of_hint)
        opened = open_table(tmp_path, "t", kms=writer.kms, properties=properties)
        assert opened.metadata_location.endswith("/v11.metadata.json")
    hint.unlink()
    assert ids(open_table(tmp_path, "t", kms=writer.kms, properties=properties)) == [1, 2]
    for path in writer.metadata.parent.glob("v*"):
        path.unlink()
    for name in ("t", "nowhere"):
        with pytest.raises(errors.TableNotFoundError, match="There is no table in"):
            open_table(tmp_path, name, properties=properties)


def test_a_catalogs_own_properties_count(tmp_path: Path) -> None:
    writer = table(tmp_path / "t")
    strict = {"encryption.allowed-key-ids": "other", "uri": "sqlite://"}
    catalog = InMemoryCatalog("lake", **strict)
    catalog.create_namespace("db")
    catalog.register_table("db.t", writer.location)
    with pytest.raises(errors.AccessDeniedError, match="allows only other"):
        open_table(catalog, "db.t", kms=writer.kms)
    allowed = {"encryption.allowed-key-ids": "k1"}
    assert ids(open_table(catalog, "db.t", kms=writer.kms, properties=allowed)) == [1, 2]
    catalog.drop_table("db.t")
    plain = table(tmp_path / "plain", key_id=None)
    catalog.register_table("db.t", plain.location)
    assert type(open_table(catalog, "db.t")) is PlaintextTable


def test_older_metadata_names_no_other_master_key(tmp_path: Path) -> None:
    """Nothing authenticates it, and a KMS that is asked for a key tells who asks."""
    writer = table(tmp_path / "t", hadoop=True)
    older = json.loads(json.dumps(writer.document))
    older["encryption-keys"][0]["encrypted-by-id"] = "other"
    older["encryption-keys"][0]["key-id"] = older["encryption-keys"][1]["encrypted-by-id"] = "kek-2"
    older["encryption-keys"][1]["key-id"] = older["snapshots"][0]["key-id"] = "list-2"
    older["snapshots"][0]["manifest-list"] += ".older"
    writer.list.with_name(f"{writer.list.name}.older").write_bytes(writer.list.read_bytes())
    path = tmp_path / "older.metadata.json"
    path.write_text(json.dumps(older))
    told = {"timestamp-ms": older["last-updated-ms"], "metadata-file": path.as_uri()}
    writer.document["metadata-log"].append(told)
    writer.append([{"id": 3}])
    report = verify_table(
        *(tmp_path / "t", None),
        kms=writer.kms,
        properties={"encryption.allowed-key-ids": "k1"},
        deep=True,
        all_snapshots=True,
    )
    problem = report.problems[0]
    assert not report.ok and problem.unchecked and "'other', and the catalog" in problem.problem
    assert set(writer.kms.asked) == {"k1"}


# ---- REST


@pytest.fixture
def server() -> Iterator[RestCatalogDouble]:
    running = RestCatalogDouble().start()
    yield running
    running.stop()


def test_rest_has_keys_from_the_servers_answer_alone(
    server: RestCatalogDouble, tmp_path: Path
) -> None:
    writer = table(tmp_path / "t", signed=False)
    server.tables["db.t"] = (writer.location, writer.document)
    writer.metadata.write_text("{}")  # what the storage says does not count
    catalog = RestCatalog("lake", uri=server.url)
    opened = open_table(catalog, "db.t", kms=writer.kms)
    assert ids(opened) == [1, 2]
    assert opened.catalog is catalog
    assert ids(opened.refresh()) == [1, 2]
    del server.tables["db.t"]
    with pytest.raises(errors.TableNotFoundError):
        opened.refresh()


@pytest.mark.parametrize("is_made", [True, False])
def test_rest_a_plaintext_table_that_gets_encrypted_as_it_is_committed(
    server: RestCatalogDouble, sql: SqlCatalog, tmp_path: Path, is_made: bool
) -> None:
    """The server refuses, perhaps the second of two requests, and PyIceberg would try again."""

    def encrypted() -> int:
        before.append(server.tables["db.t"][1])
        server.tables["db.t"] = (writer.location, writer.document)
        return 409

    plain = sql.create_table("db.t", SCHEMA)
    writer = table(tmp_path / "t", plain, signed=False)
    document = json.loads(plain.metadata.model_dump_json())
    server.tables["db.t"] = (plain.metadata_location, document)
    opened = open_table(RestCatalog("lake", uri=server.url), "db.t")
    before: list[Any] = []
    if is_made:
        server.then = encrypted
    else:
        server.first = encrypted
    with pytest.raises(CommitStateUnknownException, match="was encrypted since") as unknown:
        opened.append(rows(8))
    made = [one["snapshot-id"] for one in before[0].get("snapshots", ())]
    assert len(made) == is_made
    assert all(f"snapshot {one}." in str(unknown.value) for one in made)
    (written,) = (tmp_path / "db").rglob("*.parquet")
    assert str(written) in str(unknown.value)


@pytest.mark.parametrize("is_read", [True, False])
def test_rest_a_commit_that_was_made_and_that_its_retry_does_not_see(
    server: RestCatalogDouble,
    sql: SqlCatalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_read: bool,
) -> None:
    """A replica lags, and then the table is encrypted; or it has a column by now that is not read in Python."""

    def answer(path: str) -> tuple[int, dict[str, Any]]:
        if made and then:
            server.tables["db.t"] = then.pop(0)
        return stock(path)

    def twice() -> int:
        location, document = server.tables["db.t"]
        made.append(document["current-snapshot-id"])
        if not is_read:
            changed = copy.deepcopy(document)
            variant = {"id": 2, "name": "v", "required": False, "type": "variant"}
            changed["schemas"][0]["fields"].append(variant)
            then.append((location, changed))
        return 409

    plain = sql.create_table("db.t", SCHEMA)
    writer = table(tmp_path / "t", plain, signed=False)
    old = (plain.metadata_location, json.loads(plain.metadata.model_dump_json()))
    then = [old, (writer.location, writer.document)] if is_read else []
    made: list[int] = []
    stock = server.answer
    server.tables["db.t"], server.then = old, twice
    monkeypatch.setattr(server, "answer", answer)
    opened = open_table(RestCatalog("lake", uri=server.url), "db.t", kms=writer.kms)
    with pytest.raises(CommitStateUnknownException) as unknown:
        opened.append(rows(8))
    told = str(unknown.value)
    assert ("was encrypted since" if is_read else "columns of type variant") in told
    assert f"had, snapshot {made[0]}. Look in the table itself; if it was encrypted," in told
    left = [*(tmp_path / "db").rglob("*.parquet"), *(tmp_path / "db").rglob("*.avro")]
    assert len(left) == (5 if is_read else 3)  # a retry writes a manifest and a list of its own
    assert all(str(one) in told for one in left)


def test_rest_takes_rules_from_the_call_alone(server: RestCatalogDouble, tmp_path: Path) -> None:
    writer = table(tmp_path / "t", signed=False)
    server.tables["db.t"] = (writer.location, writer.document)
    catalog = RestCatalog("lake", uri=server.url, **{"encryption.plaintext-files": "allow"})
    with pytest.raises(
        errors.ConfigurationError, match=r"plaintext-files of REST catalog lake may"
    ):
        open_table(catalog, "db.t", kms=writer.kms)
    rules = {"encryption.plaintext-files": "allow"}
    assert ids(open_table(catalog, "db.t", kms=writer.kms, properties=rules)) == [1, 2]


@pytest.mark.parametrize(
    "name",
    [one.stock for kms in BY_TYPE.values() for _, one in settings(kms).values() if one.stock],
)
def test_rest_servers_do_not_say_where_the_kms_is(
    server: RestCatalogDouble, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by Iceberg's own names either, which go to whoever has the catalog."""
    server.overrides = {name: "https://other.example.com"}
    catalog = RestCatalog("lake", uri=server.url)
    assert catalog.properties[name] == "https://other.example.com"
    asked: list[dict[str, str]] = []
    for module in (_load, _opened):
        monkeypatch.setattr(module, "from_properties", asked.append)
    given = {"encryption.kms-type": "aws", "kms.endpoint": "https://ours.example.com"}
    _load.tables_of(catalog, "db.t", None, given)
    _opened.Source(catalog, "db.t", None, given).require_client()
    assert asked == [given] * 3


@pytest.mark.parametrize("told_all", [True, False])
def test_rest_servers_that_list_the_heads_of_branches_alone(
    server: RestCatalogDouble, tmp_path: Path, told_all: bool
) -> None:
    """What verifies all snapshots asks for them, and looks into the metadata file; or says that it cannot."""
    writer = table(tmp_path / "t", signed=False)
    (old,) = writer.document["snapshots"]
    writer.append([{"id": 3}])
    whole = writer.document
    server.tables["db.t"] = (writer.location, whole)
    server.heads_only, server.told_all = True, told_all
    server.overrides = {"snapshot-loading-mode": "refs"}

    def verified(all_snapshots: bool = True) -> Any:
        catalog = RestCatalog("lake", uri=server.url)
        return verify_table(catalog, "db.t", kms=writer.kms, all_snapshots=all_snapshots)

    refused = pytest.raises(errors.IcebergCryptoError, match="does not list all snapshots")
    report = verified()
    assert (report.ok, report.snapshots) == (True, 2)
    assert len(verified(False).snapshot_history) == 1 + told_all  # that there are others
    Path(old["manifest-list"].removeprefix("file://")).write_bytes(b"plaintext")
    found = [one.kind for one in verified().files if one.problem]
    assert found == ["manifest list"]
    others = json.dumps({**whole, "table-uuid": "other"})
    for location, stored in ((writer.location, others), (writer.location, "{}"), ("", "")):
        writer.metadata.write_text(stored)
        server.tables["db.t"] = (location, whole)
        with nullcontext() if told_all else refused:
            verified()


def edited(document: dict[str, Any], what: str) -> None:
    """Make metadata name a snapshot that it does not list, or disagree with itself."""
    first, last = (one["snapshot-id"] for one in document["snapshots"])
    document["refs"]["first"] = {"snapshot-id": first, "type": "tag"}
    if what == "main":
        document["current-snapshot-id"] = first
    elif what == "none":
        document["current-snapshot-id"] = -1
    else:
        document["snapshots"] = document["snapshots"][:-1] if what == "last" else []
    if what == "last":
        document["refs"] = {}
    assert last != first


@pytest.mark.parametrize("kind", ["rest", "sql", "path"])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("last", "the current snapshot is [0-9]+, which is not among"),
        ("all", "branch 'main' is [0-9]+, which is not among"),
        ("main", "branch 'main' is [0-9]+, and the current snapshot is [0-9]+"),
        ("none", "branch 'main' is [0-9]+, and the current snapshot is -1"),
    ],
)
def test_metadata_that_lacks_a_snapshot_that_it_names(
    server: RestCatalogDouble, sql: SqlCatalog, tmp_path: Path, kind: str, what: str, words: str
) -> None:
    """It would be a table without these rows, and nothing of them would be verified."""
    writer = table(tmp_path / "t", hadoop=kind == "path", signed=False)
    writer.append([{"id": 3}])
    edited(writer.document, what)
    writer.write()
    catalog: Any = RestCatalog("lake", uri=server.url) if kind == "rest" else sql
    if kind == "rest":
        server.tables["db.t"] = (writer.location, writer.document)
    elif kind == "sql":
        sql.register_table("db.t", writer.location)
    of = [tmp_path, "t"] if kind == "path" else [catalog, "db.t"]
    rules = {} if kind == "rest" else {"encryption.metadata-authentication": "off"}
    for look in (open_table, verify_table, table_readers):
        for more in ({}, {"all_snapshots": True}) if look is verify_table else ({},):
            with pytest.raises(
                errors.IcebergCryptoError,
                match=rf"Table (lake\.db\.)?t: its metadata .*/{writer.metadata.name} contradicts itself: {words}",
            ) as refused:
                look(*of, kms=writer.kms, properties=rules, **more)
            assert ("REST server" in refused.value.hint) == (kind == "rest")


@pytest.mark.parametrize(
    "members",
    [
        {"refs": {"main": {"snapshot-id": "1", "type": "branch"}}},
        {"refs": {"main": {"snapshot-id": 1}}},
        {"refs": {"main": {"snapshot_id": 1, "snapshot_ref_type": "branch"}}},
        {"refs": [["main", {"snapshot-id": 1, "type": "branch"}]]},
        {"refs": {}, "current_snapshot_id": 1},
        {"current-snapshot-id": "1"},
    ],
)
def test_metadata_that_pyiceberg_would_read_otherwise(
    tmp_path: Path, members: dict[str, Any]
) -> None:
    """It takes members by its own names, and text for numbers: rows would be read that nothing verifies."""
    writer = table(tmp_path / "t", hadoop=True, signed=False)
    number = writer.document["current-snapshot-id"]
    if "current_snapshot_id" in members:
        del writer.document["current-snapshot-id"]
    told = json.dumps(members).replace('"1"', f'"{number}"').replace(": 1", f": {number}")
    writer.document |= json.loads(told)
    writer.write()
    rules = {"encryption.metadata-authentication": "off"}
    for look in (open_table, verify_table, table_readers):
        with pytest.raises(
            errors.IcebergCryptoError, match="is not the metadata of a table: .* or branches are"
        ):
            look(tmp_path, "t", kms=writer.kms, properties=rules)


def test_empty_tables_name_no_snapshot(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t", SCHEMA, hadoop=True)
    for number in (-1, None):
        writer.document["current-snapshot-id"] = number
        writer.write()
        assert ids(open_table(tmp_path, "t", kms=writer.kms)) == []
    del writer.document["current-snapshot-id"]
    writer.write()
    assert ids(open_table(tmp_path, "t", kms=writer.kms)) == []


def test_rest_refuses_a_table_whose_key_id_is_gone(
    server: RestCatalogDouble, tmp_path: Path
) -> None:
    writer = table(tmp_path / "t", signed=False)
    del writer.document["properties"]["encryption.key-id"]
    server.tables["db.t"] = (writer.location, writer.document)
    with pytest.raises(errors.TamperedError, match="encryption.key-id is gone"):
        open_table(RestCatalog("lake", uri=server.url), "db.t", kms=writer.kms)


def test_rest_refuses_a_server_that_drops_keys(server: RestCatalogDouble, tmp_path: Path) -> None:
    writer = table(tmp_path / "t", signed=False)
    writer.document["encryption-keys"] = []
    server.tables["db.t"] = (writer.location, writer.document)
    opened = open_table(RestCatalog("lake", uri=server.url), "db.t", kms=writer.kms)
    with pytest.raises(errors.TamperedError, match=f"Table lake.db.t: .*{writer.list.as_uri()}"):
        opened.scan().to_arrow()


def test_rest_plans_here_and_not_on_the_server(server: RestCatalogDouble, tmp_path: Path) -> None:
    writer = table(tmp_path / "t", signed=False)
    server.tables["db.t"] = (writer.location, writer.document)
    server.endpoints = [
        "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
    ]
    catalog = RestCatalog("lake", uri=server.url, **{"scan-planning-mode": "server"})
    assert catalog.supports_server_side_planning()
    assert ids(open_table(catalog, "db.t", kms=writer.kms)) == [1, 2]
    assert not [path for path in server.asked if path.endswith("/plan")]


# ---- Hive


def test_hive_by_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = table(tmp_path / "t", signed=False)
    catalog, metastore = hive()
    metastore.tables = [entry(writer)]
    assert ids(open_table(catalog, "db.t", kms=writer.kms)) == [1, 2]
    old = entry(writer)
    writer.append([{"id": 3}])
    mixed = entry(writer, metadata_hash=old.parameters["metadata_hash"])
    metastore.tables = [mixed, mixed, entry(writer)]  # name and hash of two commits
    assert ids(open_table(catalog, "db.t", kms=writer.kms)) == [1, 2, 3]
    metastore.tables = [mixed]
    monkeypatch.setattr(_load, "_LOOK_AGAIN_S", (0.001, 0.001))
    with pytest.raises(errors.TamperedError, match=r"Table lake.db.t: .*its hash differs") as told:
        open_table(catalog, "db.t", kms=writer.kms)
    assert "before 1.11" in told.value.hint and "=off" not in told.value.hint
    metastore.tables = [entry(writer, **{"encryption.key-id": "k2"})]
    with pytest.raises(errors.TamperedError, match="encryption.key-id=k1, and the Hive metastore"):
        open_table(catalog, "db.t", kms=writer.kms)


def test_hive_without_a_hash_vouches_for_nothing(tmp_path: Path) -> None:
    """As Iceberg does, it is read; a verification says so."""
    writer = table(tmp_path / "t", signed=False)
    catalog, metastore = hive()
    hashed = entry(writer)
    unhashed, of_no_key = entry(writer), entry(writer)
    del unhashed.parameters["metadata_hash"], of_no_key.parameters["encryption.key-id"]
    for kept, authenticated, said in (
        (hashed, True, "each load checks the hash that the Hive metastore has of it"),
        (unhashed, False, "the Hive metastore has no hash of it"),
        (of_no_key, False, "the Hive metastore has no hash of it"),
    ):
        metastore.tables = [kept]
        report = verify_table(catalog, "db.t", kms=writer.kms)
        assert report.metadata_authenticated is authenticated
        assert report.metadata_authentication == said


def test_hive_has_tables_of_other_formats(tmp_path: Path) -> None:
    catalog, metastore = hive()
    metastore.tables = [SimpleNamespace(parameters={"table_type": "EXTERNAL_TABLE"})]
    with pytest.raises(errors.TableNotFoundError):
        open_table(catalog, "db.t")


# ---- Glue


def test_glue(tmp_path: Path) -> None:
    writer = table(tmp_path / "t")
    login = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "eu-west-1"}
    client = boto3.client("glue", **login)
    parameters = {"table_type": "ICEBERG", "metadata_location": writer.location}
    answer = {"Table": {"Name": "t", "DatabaseName": "db", "Parameters": parameters}}
    asked = {"DatabaseName": "db", "Name": "t"}
    with Stubber(client) as stub:
        stub.add_response("get_table", answer, asked)
        stub.add_response("get_table", answer, asked)
        stub.add_client_error("get_table", "EntityNotFoundException", expected_params=asked)
        catalog = GlueCatalog("lake", client=client)
        assert ids(open_table(catalog, "db.t", kms=writer.kms)) == [1, 2]
        writer.metadata.write_bytes(writer.metadata.read_bytes().replace(b"main", b"mine"))
        with pytest.raises(errors.TamperedError, match="its MAC does not match"):
            open_table(catalog, "db.t", kms=writer.kms)
        with pytest.raises(errors.TableNotFoundError):
            open_table(catalog, "db.t", kms=writer.kms)


# ---- others


def test_a_catalog_of_another_kind(tmp_path: Path) -> None:
    """Nothing vouches for it; what it loads is read, and checked as far as it can be."""
    writer = table(tmp_path / "t", signed=False)

    class Other(InMemoryCatalog):
        pass

    catalog = Other("lake", uri="sqlite://")
    catalog.create_namespace("db")
    catalog.register_table("db.t", writer.location)
    with pytest.raises(errors.TamperedError, match="it has no encryption.metadata-mac"):
        open_table(catalog, "db.t", kms=writer.kms)  # a subclass of one that is known
    unknown = type("Unknown", (), dict(vars(Other)))
    assert _load._pyiceberg.trust(unknown()).name == "NOTHING"
