"""Each call of a statement to the storage, the KMS and the catalog's database goes wrong once, in each way.

What Java does without Spark is tried in EveryCallTest; these are the statements that run on Spark.
"""

import os
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from harness.counts import told
from harness.files import ENCRYPTED_MAGIC, MARKER, files_below, magic
from harness.lake import COLUMNS, Lake, tblproperties
from harness.world import catalog_conf
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table

ALL = [0, 1, 2, 100, 101, 102]
ROWS = [0, 1, 2, 100, 102]
CHANGES = ("CREATE", "CLOSE", "RENAME", "DELETE", "WRAP", "UPDATE")
READS = ("OPEN", "LIST", "UNWRAP", "QUERY")
MAY_BE_MADE = re.compile("may have (been )?made")
SECONDS = int(os.environ.get("ICEBERG_CRYPTO_FAULT_SECONDS", "20"))
"""How long one statement is tried on one catalog; what was left out is printed."""


@dataclass(frozen=True)
class Statement:
    """What is done to a table of ROWS, whose tag shows ALL.

    Attributes:
        sql: the statement, of {catalog}, {table} and {name}.
        key: the table is created with.
        rows: the ids after it.
        before: statements that prepare for it.
        plaintext: whether the table, or what it was encrypted from, is plaintext until it is done.
    """

    sql: str
    key: str | None = "k1"
    rows: list[int] = field(default_factory=lambda: ROWS)
    before: tuple[str, ...] = ()
    plaintext: bool = False


ENCRYPT = "CALL {catalog}.system.encrypt_table(table => '{name}', key_id => 'k1')"
PURGE = "CALL {catalog}.system.purge_plaintext(table => '{name}')"
PROCEDURE = "CALL {catalog}.system."
STATEMENTS = {
    "encrypt_table": Statement(ENCRYPT, key=None, plaintext=True),
    "encrypt_table, by a portion": Statement(
        ENCRYPT[:-1] + ", max_bytes => 1)", key=None, plaintext=True
    ),
    "encrypt_table, the last portion": Statement(
        ENCRYPT, key=None, before=(ENCRYPT[:-1] + ", max_bytes => 1)",), plaintext=True
    ),
    "purge_plaintext": Statement(PURGE, key=None, before=(ENCRYPT,), plaintext=True),
    "decrypt_table": Statement(
        PROCEDURE + "decrypt_table(table => '{name}', confirm => true)",
        plaintext=True,
    ),
    "reencrypt_table": Statement(PROCEDURE + "reencrypt_table(table => '{name}')"),
    "rewrite_data_files": Statement(
        PROCEDURE + "rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    ),
    "rewrite_manifests": Statement(PROCEDURE + "rewrite_manifests(table => '{name}')"),
    "expire_snapshots": Statement(
        PROCEDURE
        + "expire_snapshots(table => '{name}', older_than => TIMESTAMP '2999-01-01', retain_last => 1)"
    ),
    "INSERT OVERWRITE": Statement(
        f"INSERT OVERWRITE {{table}} VALUES (9, '{MARKER}', 'p')", rows=[9]
    ),
    "DELETE, merge-on-read": Statement("DELETE FROM {table} WHERE id = 2", rows=[0, 1, 100, 102]),
    "UPDATE, copy-on-write": Statement(
        "UPDATE {table} SET id = 7 WHERE id = 1",
        rows=[0, 2, 7, 100, 102],
        before=("ALTER TABLE {table} SET TBLPROPERTIES ('write.update.mode'='copy-on-write')",),
    ),
    "MERGE": Statement(
        f"MERGE INTO {{table}} t USING (SELECT explode(array(0, 9)) AS i) s ON t.id = s.i WHEN MATCHED THEN DELETE"
        f" WHEN NOT MATCHED THEN INSERT (id, note, part) VALUES (s.i, '{MARKER}', 'p')",
        rows=[1, 2, 9, 100, 102],
    ),
}


class Trials:
    """One table, which is put back before each trial of a statement."""

    def __init__(self, lake: Lake, folder: Path, statement: Statement):
        self.lake = lake
        self.statement = statement
        self.table = lake.table()
        self.names = {
            "catalog": lake.catalog,
            "table": self.table,
            "name": f"{lake.namespace}.t",
        }
        jvm: Any = lake.spark._jvm
        self.calls = jvm.io.icebergcrypto.testing.NumberedCalls
        jvm.io.icebergcrypto.testing.NumberedDriver.register()
        properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
        if statement.key is not None:
            properties["encryption.key-id"] = statement.key
        lake.sql(f"CREATE TABLE {self.table} ({COLUMNS}) USING iceberg {tblproperties(properties)}")
        for i in range(3):
            lake.sql(
                f"INSERT INTO {self.table} SELECT /*+ COALESCE(1) */ * FROM VALUES "
                f"({i}, '{MARKER}-{i}', 'p'), ({100 + i}, '{MARKER}-{100 + i}', 'p')"
            )
        lake.sql(f"ALTER TABLE {self.table} CREATE TAG all_of_them")
        lake.sql(f"DELETE FROM {self.table} WHERE id = 101")
        for sql in statement.before:
            lake.sql(sql.format(**self.names))
        self.saved = folder / "saved"
        shutil.copytree(lake.folder / "t", self.saved)
        self.pointer = self.pointers("SELECT metadata_location, previous_metadata_location")

        self.before = self.state(lake.spark)
        self.run(self.session())
        self.after = self.state(self.session())
        assert self.after[1:] == (ALL, statement.rows)

    def pointers(self, verb: str, *values: object) -> Any:
        """The row of the table, in the database of the catalog or of its server."""
        database = {"jdbc": "jdbc-catalog.db", "rest": "rest-catalog.db"}.get(self.lake.kind)
        if database is None:
            return None
        source = "FROM iceberg_tables" if verb.startswith("SELECT") else ""
        with closing(sqlite3.connect(self.lake.world.root / database, timeout=30)) as rows:
            found = rows.execute(
                f"{verb} {source} WHERE table_namespace = ? AND table_name = 't'",
                (*values, self.lake.namespace),
            ).fetchone()
            rows.commit()
        return found

    def restore(self) -> None:
        shutil.rmtree(self.lake.folder / "t")
        shutil.copytree(self.saved, self.lake.folder / "t")
        if self.pointer is not None:
            self.pointers(
                "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?",
                *self.pointer,
            )

    def session(self, numbered: bool = False) -> SparkSession:
        """Another session, whose catalogs begin with nothing."""
        spark = self.lake.spark.newSession()
        options = self.lake.world.ours(self.lake.kind)
        if numbered:
            options.pop("encryption.kms-type")
            options["encryption.kms-impl"] = "io.icebergcrypto.testing.NumberedKms"
            if self.lake.kind == "jdbc":
                options["uri"] = options["uri"].replace("jdbc:", "jdbc:numbered:", 1)
            spark.conf.unset(f"spark.sql.catalog.{self.lake.catalog}.encryption.kms-type")
        implementation = self.lake.spark.conf.get(f"spark.sql.catalog.{self.lake.catalog}")
        for key, value in catalog_conf(self.lake.catalog, str(implementation), options).items():
            spark.conf.set(key, value)
        return spark

    def run(self, spark: SparkSession) -> None:
        spark.sql(self.statement.sql.format(**self.names)).collect()

    def count(self, kinds: tuple[str, ...]) -> int:
        """How many calls the statement makes when all is well."""
        self.restore()
        with self.fault(kinds, "NONE", 0):
            self.run(self.session(numbered=True))
            return int(self.calls.count())

    def one(self, kinds: tuple[str, ...], fault: str, number: int) -> str | None:
        """The statement, at one call of which something goes wrong; that call, or None if it made fewer."""
        self.restore()
        error: Exception | None = None
        spark = self.session(numbered=True)
        with self.fault(kinds, fault, number) as hit:
            try:
                self.run(spark)
            except (Py4JJavaError, PySparkException) as e:
                error = e
        try:
            self.check(fault, error)
            self.again(spark if fault != "KILLED" else self.session())
        except Exception as problem:
            raise AssertionError(
                f"{fault}, call {number}: {hit[0]}; was told: {str(error)[:2000]}"
            ) from problem
        return hit[0]

    @contextmanager
    def fault(self, kinds: tuple[str, ...], fault: str, number: int) -> Iterator[list[str | None]]:
        jvm: Any = self.lake.spark._jvm
        every = jvm.java.util.HashSet()
        for kind in kinds:
            every.add(self.calls.Kind.valueOf(kind))
        what = self.calls.Fault.valueOf(fault)
        self.calls.begin(str(self.lake.folder), every, what, number)
        hit: list[str | None] = []
        try:
            yield hit
            self.await_tasks()  # a killed driver's tasks end, too
        finally:
            hit.append(self.calls.end())

    def await_tasks(self) -> None:
        context: Any = self.lake.spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
        until = time.monotonic() + 60
        while context.statusTracker().getExecutorInfos()[0].numRunningTasks():
            assert time.monotonic() < until, "tasks of a statement that failed go on"
            time.sleep(0.01)

    def state(self, spark: SparkSession) -> tuple[dict[str, str], list[int], list[int]]:
        """What is set of encryption, as far as it is the same each time; the ids of the tag, and of the table."""
        rows = spark.sql(f"SHOW TBLPROPERTIES {self.table}").collect()
        said = {row.key: row.value for row in rows if row.key == "encryption.key-id"}
        said |= {row.key: "" for row in rows if row.key == "encryption.plaintext-metadata"}
        tagged, ids = (
            sorted(row.id for row in spark.sql(f"SELECT id FROM {self.table} {of}").collect())
            for of in ("VERSION AS OF 'all_of_them'", "")
        )
        return said, tagged, ids

    def check(self, fault: str, error: Exception | None) -> None:
        state = self.state(self.session())
        assert state in (self.before, self.after)
        if error is None:
            assert state == self.after, "it was reported as done"
        elif fault != "KILLED" and self.before != self.after and not MAY_BE_MADE.search(str(error)):
            assert state == self.before, "it was reported as not done"
        if not self.statement.plaintext:
            self.check_plaintext()

    def again(self, spark: SparkSession) -> None:
        """It can be done once more, and what it leaves is sound."""
        if self.state(spark) != self.after or self.before == self.after:
            self.run(spark)
        spark = self.session()
        assert self.state(spark) == self.after
        if "encryption.key-id" in self.after[0]:
            with verify_table(spark, self.table, deep=True) as report:
                assert report.ok, str(report)
        if "encryption.plaintext-metadata" in self.after[0]:
            spark.sql(PURGE.format(**self.names)).collect()
        if "encryption.key-id" in self.after[0]:
            self.check_plaintext()

    def check_plaintext(self) -> None:
        found = [p for p in files_below(self.lake.folder / "t") if magic(p) not in ENCRYPTED_MAGIC]
        assert not [path for path in found if path.stat().st_size], found


@pytest.mark.nightly
@pytest.mark.parametrize("lake", ["jdbc", "rest", "hadoop"], indirect=True)
@pytest.mark.parametrize("name", STATEMENTS)
def test_every_call(
    lake: Lake, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    """Each call that changes something, with each fault, and each that reads, in any order, while there is time."""
    trials = Trials(lake, tmp_path, STATEMENTS[name])
    changes, reads = trials.count(CHANGES), trials.count(READS)
    left = [
        *((CHANGES, fault, n) for fault in ("FAILED", "LOST", "KILLED") for n in range(changes)),
        *((READS, "FAILED", n) for n in range(reads)),
    ]
    Random(os.environ.get("ICEBERG_CRYPTO_SEED", "1")).shuffle(left)
    hits: Counter[str] = Counter()
    until = time.monotonic() + SECONDS
    while left and time.monotonic() < until:
        kinds, fault, number = left.pop()
        hit = trials.one(kinds, fault, number)
        hits[f"{fault} {hit.split()[0] if hit else 'not reached'}"] += 1
    record_property("counts", f"{name} on {lake.kind}: {told(hits)}; {len(left)} left out")
    assert hits
