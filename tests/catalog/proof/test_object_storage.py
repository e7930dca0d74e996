"""Tables on object stores, with Iceberg's own FileIO of each: S3, Google Cloud Storage and Azure's Data Lake."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from harness.classes import SPARK_CATALOG
from harness.files import MARKER
from harness.lake import FILES_ON_DRIVER
from harness.sessions import OtherSession, process_id, remove_orphans
from harness.world import STOCK, World, catalog_conf
from servers.stores import KINDS, ObjectStore, start_store

pytestmark = [pytest.mark.nightly, pytest.mark.drawn("store")]

MERGE_ON_READ = ", ".join(
    f"'write.{verb}.mode'='merge-on-read'" for verb in ("delete", "update", "merge")
)
ENCRYPTED = {b"PARE", b"AGS1"}


@dataclass
class StoredTable:
    """A table whose objects are reached past Spark, too."""

    session: OtherSession
    store: ObjectStore
    name: str

    @property
    def uri(self) -> str:
        return f"{self.store.root}/warehouse/db/{self.name}"

    def put(self, path: str, content: bytes) -> str:
        """Writes an object below the table's location, or beside it; its URI."""
        return self.store.put(f"{self.uri}{path}", content)

    def objects(self) -> list[str]:
        return sorted(self.store.below(self.uri))

    def data_file(self) -> str:
        return next(one for one in self.objects() if one.endswith(".parquet"))

    def sql(self, statement: str) -> list[dict[str, Any]]:
        return self.session.sql(statement.format(t=f"lake.db.{self.name}"))

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.sql("SELECT id FROM {t}"))

    def verify(self, **options: Any) -> dict[str, Any]:
        return self.session.verify(f"lake.db.{self.name}", **options)


@pytest.fixture(scope="module", params=KINDS)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectStore]:
    started = start_store(request.param, tmp_path_factory.mktemp(request.param))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def conf(
    world: World, store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("session")

    def options(name: str) -> dict[str, str]:
        return {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/{name}.db?busy_timeout=30000",
            "jdbc.schema-version": "V1",
            "cache-enabled": "false",
            **store.options,
        }

    keys = {"encryption.kms-type": "keystore", **world.keystore_options()}
    plain = {**options("plain"), "warehouse": f"{store.root}/plain"}
    made = {
        **world.session_conf(metastore=folder / "metastore"),
        **catalog_conf("lake", SPARK_CATALOG, {**options("lake"), **keys}),
        **catalog_conf("plain", STOCK, plain),
        FILES_ON_DRIVER: "0",  # the FileIO is sent to tasks
    }
    made["spark.jars"] = ",".join([made["spark.jars"], *map(str, store.jars)])
    return made


@pytest.fixture(scope="module")
def session(conf: dict[str, str], store: ObjectStore) -> Iterator[OtherSession]:
    with OtherSession(conf, store.environment) as made:
        made.sql("CREATE NAMESPACE lake.db")
        made.sql("CREATE NAMESPACE plain.db")
        yield made


@pytest.fixture
def table(session: OtherSession, store: ObjectStore) -> Iterator[StoredTable]:
    made = StoredTable(session, store, f"t{uuid.uuid4().hex[:8]}")
    made.sql(
        "CREATE TABLE {t} (id BIGINT, part STRING) PARTITIONED BY (part) "
        f"TBLPROPERTIES ('encryption.key-id'='k1', {MERGE_ON_READ})"
    )
    made.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'p' FROM range(5)")
    made.sql("DELETE FROM {t} WHERE id = 1")
    yield made
    store.proxy.mode, store.proxy.only = "pass", ""


def problems(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["path"]: (one["kind"], one["code"]) for one in report["problems"]}


def test_the_life_of_a_table(table: StoredTable) -> None:
    """Until DROP TABLE PURGE, which leaves a neighbour whose name begins alike."""
    table.sql("UPDATE {t} SET part = 'q' WHERE id = 2")
    table.sql(
        "MERGE INTO {t} t USING (SELECT id FROM range(4, 7)) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'q')"
    )
    table.sql("ALTER TABLE {t} ADD COLUMN note STRING")
    assert table.ids() == [0, 2, 3, 5, 6]
    assert any(one.endswith(".puffin") for one in table.objects()), "deletion vectors"
    call = "CALL lake.system.{procedure}(table => 'db." + table.name + "'{more})"
    table.sql(call.format(procedure="rotate_master_key", more=", new_key_id => 'k2'"))
    table.sql(
        call.format(procedure="rewrite_data_files", more=", options => map('rewrite-all', 'true')")
    )
    table.sql(
        call.format(
            procedure="expire_snapshots",
            more=", older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1",
        )
    )
    assert table.ids() == [0, 2, 3, 5, 6]
    report = table.verify(deep=True, all_snapshots=True, strays=True)
    assert report["ok"], report
    for one in table.objects():
        assert one.endswith(".metadata.json") or table.store.get(one)[:4] in ENCRYPTED
    beside = table.put("2/data/rows.parquet", b"PAR1 of a neighbour")
    table.sql("DROP TABLE {t} PURGE")
    assert [one for one in table.objects() if not one.endswith(".metadata.json")] == []
    assert table.store.below(f"{table.uri}2") == [beside]


def test_a_clean_table(table: StoredTable) -> None:
    """What begins alike is not below it."""
    table.put("-old/data/rows.parquet", b"PAR1 of a neighbour")
    table.put("2/rows.csv", b"1,2")
    for depths in ((), ("structure",), ("structure", "deep")):
        report = table.verify(strays=True, **dict.fromkeys(depths, True))
        assert report["ok"], report
        counted = {one["kind"]: one["files"] for one in report["counts"]}
        assert sum(counted.values()) == len(table.objects())
        assert "stray" not in counted


def test_no_row_is_lost_to_a_name(table: StoredTable) -> None:
    """Values that need an escape in a path: none of their files is a stray."""
    values = ["a/b", "50% off", "100%25", "x y+z", "ü#?&=", "..", "a:b"]
    table.sql(
        "INSERT INTO {t} VALUES " + ", ".join(f"({100 + i}, '{v}')" for i, v in enumerate(values))
    )
    rows = {row["part"] for row in table.sql("SELECT part FROM {t} WHERE id >= 100")}
    assert rows == set(values)
    report = table.verify(strays=True)
    assert report["ok"], report["problems"]
    assert "stray" not in {one["kind"] for one in report["counts"]}


def test_strays(table: StoredTable) -> None:
    table.put("/data/orphan.parquet", table.store.get(table.data_file()))
    table.put("/data/_SUCCESS", b"")
    planted = [
        table.put("/data/part=p/_temporary/.hidden/rows.parquet", b"PAR1 plaintext"),
        table.put("/metadata/stage-1.avro", b"Obj\x01 plaintext"),
    ]
    report = table.verify(strays=True)
    assert problems(report) == dict.fromkeys(planted, ("stray", "plaintext"))
    strays = {one["magic"]: one["files"] for one in report["counts"] if one["kind"] == "stray"}
    assert strays == {"PARE": 1, "EMPTY": 1, "PAR1": 1, "AVRO": 1}
    assert table.verify()["ok"], "without strays they are not looked for"


def test_orphans_are_removed(table: StoredTable) -> None:
    orphan = table.put("/data/part=p/orphan.parquet", b"PARE")
    beside = table.put("2/data/rows.parquet", b"PAR1 of a neighbour")
    before = table.objects()
    if table.store.kind == "adls":  # whose FileIO lists names that Iceberg takes for no table's
        with pytest.raises(RuntimeError, match="by names in their container.*nothing was deleted"):
            table.session.do(remove_orphans, f"lake.db.{table.name}")
        assert table.objects() == before
        return
    removed = table.session.do(remove_orphans, f"lake.db.{table.name}")
    assert removed == [orphan]
    assert table.objects() == [one for one in before if one != orphan]
    assert table.store.below(f"{table.uri}2") == [beside]
    assert table.ids() == [0, 2, 3, 4]


def test_damaged_objects(table: StoredTable) -> None:
    data = table.data_file()
    whole = table.store.get(data)
    damages = {
        "plaintext": ({}, b"PAR1" + whole[4:]),
        "truncated": ({"structure": True}, whole[:-8]),
        "tampered": ({"deep": True}, whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]),
    }
    for code, (options, content) in damages.items():
        table.store.put(data, content)
        assert problems(table.verify(**options)) == {data: ("data", code)}
        if code != "plaintext":  # which is the first bytes alone, and those of the end count
            with pytest.raises(RuntimeError, match="io.icebergcrypto"):
                table.ids()
    table.store.delete(data)
    assert problems(table.verify()) == {data: ("data", "missing")}
    table.store.put(data, whole)
    assert table.verify(deep=True)["ok"]


def test_exchanged_manifests(table: StoredTable) -> None:
    one, other = [name for name in table.objects() if "-m0.avro" in name][:2]
    content = table.store.get(one)
    table.store.put(one, table.store.get(other))
    with pytest.raises(RuntimeError, match="io.icebergcrypto.TamperedException"):
        table.ids()
    table.store.put(one, content)
    assert table.ids() == [0, 2, 3, 4]


@pytest.mark.parametrize("written", [".parquet", "-m0.avro", "snap-"])
def test_a_failed_write_leaves_no_more_than_on_plaintext(table: StoredTable, written: str) -> None:
    """Of data files one of which cannot be written, nothing; Iceberg keeps them once it has begun to commit."""
    plain = f"plain.db.{table.name}"
    table.session.sql(f"CREATE TABLE {plain} (id BIGINT, part STRING) PARTITIONED BY (part)")
    before = {"lake": table.objects(), "plain": []}
    folder = f"{table.store.root}/plain/db/{table.name}"
    before["plain"] = table.store.below(folder)
    table.store.proxy.only = written
    table.store.proxy.mode = ("status", 403, {}, "")
    left = {}
    for catalog, listed in before.items():
        with pytest.raises(RuntimeError, match="403|denied|Forbidden"):
            table.session.sql(f"INSERT INTO {catalog}.db.{table.name} VALUES (10, 'p'), (11, 'q')")
        now = table.objects() if catalog == "lake" else table.store.below(folder)
        left[catalog] = [one for one in now if one not in listed]
    table.store.proxy.mode = "pass"
    assert len(left["lake"]) <= len(left["plain"])
    assert left["lake"] == [] or written != ".parquet"
    assert {table.store.get(one)[:4] for one in left["lake"]} <= ENCRYPTED
    table.sql("INSERT INTO {t} VALUES (10, 'p'), (11, 'q')")
    assert table.ids() == [0, 2, 3, 4, 10, 11]
    strays = table.verify(strays=True)
    assert strays["ok"], strays["problems"]


# Uploads in parts that were left can be seen on S3 alone; only its client deletes many objects by one request, and is
# led to a folder without a catalog by its environment.
on_s3 = pytest.mark.parametrize("store", ["s3"], indirect=True)


@pytest.fixture
def large(table: StoredTable) -> Iterator[str]:
    """Rows for a file of some 13 MB, which goes to S3 in parts of 5 MiB, and tables `large` for it."""
    assert table.store.unfinished and table.store.unfinished() == []
    for catalog, key in {"lake": "'encryption.key-id'='k1', ", "plain": ""}.items():
        table.session.sql(
            f"CREATE TABLE {catalog}.db.large (id BIGINT, note STRING) TBLPROPERTIES "
            f"({key}'write.parquet.compression-codec'='uncompressed')"
        )
    yield (
        f"SELECT id, concat('{MARKER}', array_join(transform(sequence(1, 30), i -> uuid()), ''))"
        " FROM range(0, 12000, 1, 1)"
    )
    for catalog in ("lake", "plain"):
        table.session.sql(f"DROP TABLE {catalog}.db.large PURGE")


@on_s3
def test_a_failed_upload_leaves_no_parts(table: StoredTable, large: str) -> None:
    store = table.store
    assert store.unfinished
    store.proxy.only, store.proxy.mode = "partNumber=2", ("status", 403, {}, "")
    for catalog in ("lake", "plain"):
        with pytest.raises(RuntimeError, match="403|denied|Forbidden"):
            table.session.sql(f"INSERT INTO {catalog}.db.large {large}")
    store.proxy.mode = "pass"
    assert store.unfinished() == []
    table.session.sql(f"INSERT INTO lake.db.large {large}")
    (row,) = table.session.sql("SELECT count(DISTINCT id) AS ids FROM lake.db.large")
    assert row == {"ids": 12_000}


@on_s3
def test_a_writer_is_killed_in_an_upload(
    table: StoredTable, large: str, conf: dict[str, str]
) -> None:
    """kill -9: the table is as before, and the parts that are left hold no plaintext."""
    store = table.store
    assert store.unfinished
    store.proxy.forget()
    store.proxy.only, store.proxy.mode = "partNumber=3", "hang"
    writer = OtherSession(conf, store.environment)
    process = writer.do(process_id)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(writer.sql, f"INSERT INTO lake.db.large {large}")
        end = time.monotonic() + 120
        while not any("partNumber=3" in one for one in store.proxy.requests):
            assert not writing.done() and time.monotonic() < end, "nothing was uploaded in parts"
            time.sleep(0.1)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(RuntimeError):
            writing.result(120)
    with suppress(Exception):
        writer.__exit__(None, None, None)
    store.proxy.mode = "pass"
    (left,) = store.unfinished()
    assert left[:4] == b"PARE"
    assert len(left) >= 5 << 20
    assert MARKER.encode() not in left
    assert table.session.sql("SELECT id FROM lake.db.large") == []
    report = table.session.verify("lake.db.large", strays=True)
    assert report["ok"], report
    table.session.sql(f"INSERT INTO lake.db.large {large}")
    assert table.session.verify("lake.db.large", deep=True)["ok"]


def test_no_more_requests_than_plaintext(session: OtherSession, store: ObjectStore) -> None:
    """Each statement, on an encrypted table and on a plaintext one of stock Iceberg."""
    statements = {
        "INSERT": "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'p' FROM range(1000)",
        "SELECT": "SELECT sum(id) FROM {t}",
        "DELETE": "DELETE FROM {t} WHERE id = 1",
        "SELECT with a deletion vector": "SELECT sum(id) FROM {t}",
        "MERGE": "MERGE INTO {t} t USING (SELECT 3 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    }
    properties = {
        "lake": f"'encryption.key-id'='k1', {MERGE_ON_READ}",
        "plain": f"'format-version'='3', {MERGE_ON_READ}",
    }
    counted: dict[str, dict[str, int]] = {}
    for round_ in ("warm", "measured"):
        for catalog, given in properties.items():
            name = f"{catalog}.db.requests_{round_}"
            session.sql(f"CREATE TABLE {name} (id BIGINT, part STRING) TBLPROPERTIES ({given})")
            counted[catalog] = {}
            for told, statement in statements.items():
                store.proxy.forget()
                session.sql(statement.format(t=name))
                counted[catalog][told] = len(store.proxy.requests)
    print(store.kind, counted)  # noqa: T201
    # a commit looks at the footer of each new file, and ADLS's streams ask when they are opened, too
    more = {"INSERT": 1} if store.kind == "adls" else {}
    for told in statements:
        assert counted["lake"][told] <= counted["plain"][told] + more.get(told, 0), counted


@on_s3
def test_purges_ask_for_few_files_by_themselves(session: OtherSession, store: ObjectStore) -> None:
    """Old data files are deleted by one request, a listing proves it, and each is opened once before."""
    files, name = 40, "lake.db.purged"
    session.sql(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('format-version'='2')")
    rows = f"INSERT INTO {name} SELECT /*+ REPARTITION({files}) */ id FROM range(4000)"
    session.sql(rows)
    old = [one for one in store.below(f"{store.root}/warehouse/db/purged") if "/data/" in one]
    assert len(old) == files
    session.sql("CALL lake.system.encrypt_table(table => 'db.purged', key_id => 'k1')")

    def asked(statement: str) -> dict[str, list[str]]:
        store.proxy.forget()
        session.sql(statement)
        names = [one.rpartition("/")[2] for one in old]
        about = [one for one in store.proxy.requests if any(name in one for name in names)]
        return {
            "MANY": [one for one in store.proxy.requests if "?delete" in one],
            **{verb: [one for one in about if one.startswith(verb)] for verb in ("GET", "HEAD")},
            "DELETE": [one for one in store.proxy.requests if one.startswith("DELETE")],
        }

    found = asked("CALL lake.system.purge_plaintext(table => 'db.purged')")
    assert len(found["GET"]) == files
    assert len(found["HEAD"]) <= 4, "one of each task"
    assert not any("/data/" in one for one in found["DELETE"])
    assert len(found["MANY"]) <= 10, "two tasks, a step each"
    session.sql(rows)
    found = asked(f"DROP TABLE {name} PURGE")
    assert not found["DELETE"] and len(found["MANY"]) <= 10
    assert not store.below(f"{store.root}/warehouse/db/purged/data")


@on_s3
def test_a_folder_that_is_not_there(table: StoredTable) -> None:
    folder = table.session.verify_folder(f"{table.uri}/")
    assert folder["ok"], folder
    assert folder["file_count"] == len(table.objects())
    planted = table.put("/a b%20c/rows.csv", b"1,2")
    assert problems(table.session.verify_folder(table.uri)) == {planted: ("file", "plaintext")}
    with pytest.raises(RuntimeError, match="ConfigurationError: There is no file in"):
        table.session.verify_folder(f"{table.uri}/absent")
    report = table.session.verify_folder("s3://no-such-bucket/t")
    assert not report["ok"]
    assert [one["unchecked"] for one in report["problems"]] == [True]
