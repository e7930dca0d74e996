"""Each request to S3 goes wrong once, in each way that S3 and networks know, in each of some operations.

Whatever happens: the table has the rows from before or after, what was reported is true, nobody is accused of what the
storage did, and the operation can be done again. Requests are numbered by their kind, by the proxy before S3.
"""

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from doubles.faults import FaultProxy, Mode
from harness.classes import SPARK_CATALOG
from harness.files import MARKER
from harness.sessions import OtherSession
from harness.world import World, catalog_conf
from servers.stores import ObjectStore, start_store

pytestmark = pytest.mark.nightly

SECONDS = float(os.environ.get("ICEBERG_CRYPTO_S3_SECONDS", "30"))  # for each operation
SEED = os.environ.get("ICEBERG_CRYPTO_SEED", "1")

# Iceberg's S3 client tries again in the one, and never in the other: then each fault is seen above it.
CATALOGS = {"lake": "0", "patient": "1"}


def answer(status: int, code: str) -> Mode:
    body = f"<Error><Code>{code}</Code><Message>planted by a test</Message></Error>"
    return ("status", status, {"Content-Type": "application/xml"}, body)


FAULTS: dict[str, Mode] = {
    "503": answer(503, "SlowDown"),
    "500": answer(500, "InternalError"),
    "403": answer(403, "AccessDenied"),
    "expired": answer(400, "ExpiredToken"),
    "404": answer(404, "NoSuchKey"),
    "refused": "refused",
    "lost": "lost",
    "cut": "reset",
    "late": "hang",
    "200": answer(200, "InternalError"),  # which two requests answer so
}
WITH_BODY = ("GET", "LIST", "DELETE MANY", "UPLOAD BEGIN", "UPLOAD COMPLETE")
ERROR_IN_200 = ("DELETE MANY", "UPLOAD COMPLETE")


def kind_of(asked: str) -> str:
    """What a request is: a method, or what S3 calls it where one method is several."""
    method, _, path = asked.partition(" ")
    for text, kind in {
        "list-type=": "LIST",
        "?delete": "DELETE MANY",
        "?uploads": "UPLOAD BEGIN",
        "partNumber=": "UPLOAD PART",
        "uploadId=": "UPLOAD ABORT" if method == "DELETE" else "UPLOAD COMPLETE",
    }.items():
        if text in path:
            return kind
    return method


class Fault:
    """A rule of the proxy: the request with a number, of those of a kind, gets a mode; all are counted."""

    def __init__(self, kind: str = "", number: int = 0, mode: Mode = "pass") -> None:
        self.kind, self.number, self.mode = kind, number, mode
        self.counts: Counter[str] = Counter()
        self.hit = ""
        self._lock = threading.Lock()

    def __call__(self, asked: str, body: bytes) -> Mode:
        kind = kind_of(asked)
        with self._lock:
            number = self.counts[kind]
            self.counts[kind] += 1
        if (kind, number) != (self.kind, self.number):
            return "pass"
        self.hit = asked
        if kind == "DELETE MANY" and self.mode == FAULTS["200"]:
            key = re.findall(rb"<Key>(.*?)</Key>", body)[0].decode()
            return (
                *self.mode[:3],
                f"<DeleteResult><Error><Key>{key}</Key><Code>InternalError</Code></Error></DeleteResult>",
            )
        return self.mode


ROWS = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('" + MARKER + "-', id) FROM range({from})"
)
MERGE_ON_READ = "'write.delete.mode'='merge-on-read'"
OTHERS = "'write.parquet.compression-codec'='uncompressed', 'write.metadata.delete-after-commit.enabled'='false'"


def made(key: str, *more: str) -> tuple[str, ...]:
    return (
        "CREATE TABLE {t} (id BIGINT, note STRING) TBLPROPERTIES "
        f"({key}{MERGE_ON_READ}, {OTHERS})",
        *(ROWS.replace("{from}", one) for one in ("0, 4, 1, 1", "4, 8, 1, 1")),
        *more,
    )


DELETED = "DELETE FROM {t} WHERE id = 1"
ENCRYPTED = made("'encryption.key-id'='k1', ")
WITH_DELETES = (*ENCRYPTED, DELETED)
PLAINTEXT = made("", DELETED)
ENCRYPT = "CALL {c}.system.encrypt_table(table => '{n}', key_id => 'k1')"
PURGE = "CALL {c}.system.purge_plaintext(table => '{n}')"
PARTS = (
    "INSERT INTO {t} SELECT id, concat('" + MARKER + "', array_join(transform(sequence(1, 30), i ->"
    " uuid()), '')) FROM range(100, 12100, 1, 1)"
)
REWRITE = (
    "CALL {c}.system.rewrite_data_files(table => '{n}', options => map('rewrite-all', 'true'))"
)
VERIFY = "verify_table"


@dataclass(frozen=True)
class Operation:
    """Statements that make a table, the one that is tried, and how many rows it makes of so many.

    Attributes:
        then: is said in the end, before no plaintext may be left.
    """

    before: tuple[str, ...]
    statement: str
    rows: tuple[int, int]
    then: tuple[str, ...] = ()


OPERATIONS = {
    "INSERT": Operation(ENCRYPTED, ROWS.replace("{from}", "8, 12, 1, 1"), (8, 12)),
    "INSERT in parts": Operation(ENCRYPTED, PARTS, (8, 12008)),
    "DELETE": Operation(ENCRYPTED, DELETED, (8, 7)),
    "SELECT": Operation(WITH_DELETES, "SELECT * FROM {t}", (7, 7)),
    "rewrite_data_files": Operation(WITH_DELETES, REWRITE, (7, 7)),
    "reencrypt_table": Operation(
        WITH_DELETES, "CALL {c}.system.reencrypt_table(table => '{n}')", (7, 7)
    ),
    "encrypt_table": Operation(PLAINTEXT, ENCRYPT, (7, 7), (PURGE,)),
    "purge_plaintext": Operation((*PLAINTEXT, ENCRYPT), PURGE, (7, 7)),
    "verify_table": Operation(WITH_DELETES, VERIFY, (7, 7)),
}
# Done, it refuses to be done again: these properties tell.
SWITCHES = {ENCRYPT: ("encryption.key-id", True), PURGE: ("encryption.plaintext-metadata", False)}

ACCUSES = re.compile(
    r"verify_table accuses|Tampered|PlaintextException|BadWrappedKey|(?:is|are) missing|was changed"
)
UNKNOWN = re.compile("CommitStateUnknown|may have made the commit")


@dataclass
class Lakes:
    """Both catalogs, and S3 behind its proxy."""

    session: OtherSession
    store: ObjectStore
    tables: int = 0

    @property
    def proxy(self) -> FaultProxy:
        return self.store.proxy

    def table(self, catalog: str, operation: Operation) -> "Tried":
        self.tables += 1
        table = Tried(self, catalog, f"db.t{self.tables}", operation)
        for statement in operation.before:
            table.say(statement)
        return table


@dataclass
class Tried:
    """A table on which an operation is tried."""

    lakes: Lakes
    catalog: str
    name: str
    operation: Operation

    def say(self, statement: str) -> list[dict[str, Any]]:
        table = f"{self.catalog}.{self.name}"
        if statement == VERIFY:
            report = self.lakes.session.verify(table, deep=True)
            accused = [one for one in report["problems"] if not one["unchecked"]]
            assert not accused, f"verify_table accuses: {accused}"
            return []
        text = statement.format(t=table, c=self.catalog, n=self.name)
        return self.lakes.session.sql(text)

    def rows(self) -> int:
        (row,) = self.say("SELECT count(DISTINCT id) AS ids, count(*) AS rows FROM {t}")
        assert row["ids"] == row["rows"], row
        return int(row["rows"])

    def is_done(self) -> bool:
        """Whether it may not be done again."""
        before, after = self.operation.rows
        if self.operation.statement in SWITCHES:
            name, there = SWITCHES[self.operation.statement]
            return (name in {row["key"] for row in self.say("SHOW TBLPROPERTIES {t}")}) is there
        return before != after and self.rows() == after

    def attempt(self, fault: Fault) -> str:
        """Does it with the fault; its error, or nothing."""
        self.lakes.proxy.rule = fault
        try:
            self.say(self.operation.statement)
            return ""
        except (RuntimeError, AssertionError) as error:  # or what verify_table found
            return str(error)
        finally:
            self.lakes.proxy.rule = None
            self.lakes.proxy.mode = "pass"  # who hangs goes on

    def check(self, fault: Fault, error: str) -> None:
        before, after = self.operation.rows
        rows = self.rows()
        done = self.is_done()
        assert rows in (before, after), f"{rows} rows"
        assert not ACCUSES.search(error), f"accuses of a storage error: {error}"
        if not error:
            assert rows == after, "reported as done"
            assert done or self.operation.statement not in SWITCHES, "reported as done"
        elif done:
            assert UNKNOWN.search(error), f"reported as failed, and done: {error}"
        if error and not done:
            self.say(self.operation.statement)
        assert self.rows() == after
        for statement in self.operation.then:
            self.say(statement)
        report = self.lakes.session.verify(
            f"{self.catalog}.{self.name}", deep=True, all_snapshots=True, strays=True
        )
        assert report["ok"], report["problems"]
        store = self.lakes.store
        for one in store.below(f"{store.root}/warehouse/{self.name.replace('.', '/')}"):
            content = store.get(one)
            assert content[:4] in (b"PARE", b"AGS1") or one.endswith(".metadata.json"), one
            assert MARKER.encode() not in content, one


@pytest.fixture(scope="module")
def lakes(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    folder = tmp_path_factory.mktemp("s3")
    store = start_store("s3", folder)
    conf = {
        **world.session_conf(metastore=folder / "metastore"),
        "spark.sql.pyspark.jvmStacktrace.enabled": "true",
    }
    conf["spark.jars"] = ",".join([conf["spark.jars"], *map(str, store.jars)])
    for name, retries in CATALOGS.items():
        options = {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/{name}.db?busy_timeout=30000",
            "jdbc.schema-version": "V1",
            "cache-enabled": "false",
            **store.options,
            "warehouse": f"{store.root}/warehouse",
            "s3.retry.num-retries": retries,
            "s3.retry.min-wait-ms": "10",
            "http-client.apache.socket-timeout-ms": "10000",
            "encryption.kms-type": "keystore",
            **world.keystore_options(),
        }
        conf |= catalog_conf(name, SPARK_CATALOG, options)
    with OtherSession(conf, store.environment) as session:
        for name in CATALOGS:
            session.sql(f"CREATE NAMESPACE {name}.db")
        yield Lakes(session, store)
    store.stop()


def cases(counts: Counter[str], random: Random) -> list[tuple[str, str, int]]:
    """Each fault at each request: first one request of each kind for each fault, then another one, and so on."""
    ranked = []
    for kind, count in counts.items():
        for fault in FAULTS:
            if (fault == "cut" and kind not in WITH_BODY) or (
                fault == "200" and kind not in ERROR_IN_200
            ):
                continue
            numbers = random.sample(range(count), count)
            ranked += [(rank, random.random(), (kind, fault, n)) for rank, n in enumerate(numbers)]
    return [case for _, _, case in sorted(ranked)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_request(
    name: str, lakes: Lakes, record_property: Callable[[str, object], None]
) -> None:
    operation, random = OPERATIONS[name], Random(f"{SEED} {name}")
    counting = Fault()
    error = lakes.table("lake", operation).attempt(counting)
    assert not error, error
    waiting = cases(counting.counts, random)
    hit: Counter[str] = Counter()
    wrong: list[str] = []
    end = time.monotonic() + SECONDS
    while waiting and time.monotonic() < end:
        kind, told, number = waiting.pop(0)
        catalog = random.choice(["lake", "lake", "lake", "patient"])
        table = lakes.table(catalog, operation)
        fault = Fault(kind, number, FAULTS[told])
        error = table.attempt(fault)
        hit[f"{kind} {told}" if fault.hit else f"{kind} {told}: not reached"] += 1
        try:
            table.check(fault, error)
        except (AssertionError, RuntimeError) as failed:
            wrong.append(
                f"{told} at {kind} {number} ({fault.hit}) of {name} on {catalog}: {failed}\nthe error was: {error}"
            )
    left = Counter(f"{kind} {told}" for kind, told, _ in waiting)
    record_property(
        "counts",
        f"S3 under {name}, seed {SEED}: {dict(counting.counts)} requests\n"
        f"  hit: {dict(sorted(hit.items()))}\n  not tried: {dict(sorted(left.items())) or 'nothing'}",
    )
    assert not wrong, f"{len(wrong)} of {hit.total()}:\n" + "\n\n".join(wrong)
