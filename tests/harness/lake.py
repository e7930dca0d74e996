"""A catalog under test: runs SQL and looks at every file after every statement."""

import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from harness.files import ENCRYPTED_MAGIC, MARKER, files_below, magic, plaintext_problem, untouched
from harness.world import World, catalog_conf

COLUMNS = "id BIGINT, note STRING, part STRING"
FILES_ON_DRIVER = "spark.iceberg-crypto.verify.files-on-driver"


@dataclass
class Lake:
    """One catalog and, in it, a namespace that belongs to one test."""

    spark: SparkSession
    world: World
    kind: str
    catalog: str
    namespace: str = field(default_factory=lambda: f"ns_{uuid.uuid4().hex[:8]}")
    _seen: set[tuple[Path, int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sql(f"CREATE NAMESPACE {self.catalog}.{self.namespace}")

    @property
    def warehouse(self) -> Path:
        return self.world.warehouse(self.kind)

    @property
    def folder(self) -> Path:
        """Where the tables of this namespace are."""
        return self.warehouse / (self.namespace + (".db" if self.kind == "hive" else ""))

    def table(self, name: str = "t", catalog: str | None = None) -> str:
        return f"{catalog or self.catalog}.{self.namespace}.{name}"

    @contextmanager
    def seen_by(self, catalog: str) -> Iterator[None]:
        """A JDBC catalog keeps its own name in each row: for a while this namespace's tables are another's."""
        self._move(self.catalog, catalog)
        try:
            yield
        finally:
            self._move(catalog, self.catalog)

    def _move(self, old: str, new: str) -> None:
        if self.kind == "jdbc":
            with closing(sqlite3.connect(self.world.root / "jdbc-catalog.db", timeout=30)) as rows:
                rows.execute(
                    "UPDATE iceberg_tables SET catalog_name = ? WHERE catalog_name = ? AND table_namespace = ?",
                    (new, old, self.namespace),
                )
                rows.commit()

    def files(self, name: str = "t") -> list[Path]:
        """The table's files on disk, without those that are in plaintext by design."""
        return list(files_below(self.folder / name))

    def magics(self, name: str = "t") -> set[bytes]:
        return {magic(path) for path in self.files(name)}

    def sql(self, statement: str) -> list[Row]:
        return self.spark.sql(statement).collect()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.sql(statement))

    def value(self, statement: str) -> Any:
        return self.sql(statement)[0][0]

    def run(self, statement: str) -> list[Row]:
        """Runs a statement, then checks every file of the namespace."""
        rows = self.sql(statement)
        self.assert_encrypted(statement)
        return rows

    def create(
        self,
        name: str = "t",
        columns: str = COLUMNS,
        key: str | None = "k1",
        partition: str = "",
        **properties: str,
    ) -> str:
        """CREATE TABLE; properties have _ for . and __ for -, as in write_merge_mode or format__version."""
        every = {key_of(name): value for name, value in properties.items()}
        if key is not None:
            every = {"encryption.key-id": key, **every}
        table = self.table(name)
        clause = f"PARTITIONED BY ({partition})" if partition else ""
        statement = (
            f"CREATE TABLE {table} ({columns}) USING iceberg {clause} {tblproperties(every)}"
        )
        self.run(statement) if key is not None else self.sql(statement)
        return table

    def insert(self, table: str, ids: Iterable[int], part: str = "p") -> str:
        """Inserts rows (id, MARKER-id, part) as one data file, and returns the table's name."""
        values = ", ".join(f"({i}, '{MARKER}-{i}', '{part}')" for i in ids)
        self.run(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
        return table

    def ids(self, table: str, suffix: str = "") -> list[int]:
        """The sorted ids of a table of COLUMNS, whose every note is checked to hold the marker."""
        rows = self.sql(f"SELECT id, note FROM {table} {suffix}")
        assert all(MARKER in row.note for row in rows), rows
        return sorted(row.id for row in rows)

    def history(self, table: str) -> dict[int, list[int]]:
        """The ids of each snapshot."""
        snapshots = [row[0] for row in self.sql(f"SELECT snapshot_id FROM {table}.snapshots")]
        return {one: self.ids(table, f"VERSION AS OF {one}") for one in snapshots}

    def properties(self, table: str) -> dict[str, str]:
        return {row.key: row.value for row in self.sql(f"SHOW TBLPROPERTIES {table}")}

    def tables(self) -> set[str]:
        """The names of the namespace's tables."""
        found = self.sql(f"SHOW TABLES IN {self.catalog}.{self.namespace}")
        return {row.tableName for row in found}

    def await_tasks(self) -> None:
        """Waits for tasks of a job that has ended: one that knows that it was cancelled may be the last to know."""
        context: Any = self.spark.sparkContext
        tracker, ends = context._jsc.sc().statusTracker(), time.monotonic() + 60
        while running := tracker.getExecutorInfos()[0].numRunningTasks():
            assert time.monotonic() < ends, f"{running} tasks run on"
            time.sleep(0.01)

    def plaintext_files(self, name: str = "t") -> list[Path]:
        return [path for path in self.files(name) if magic(path) not in ENCRYPTED_MAGIC]

    def java(self, table: str | None = None, refresh: bool = True) -> Any:
        """Iceberg's own Table: as the catalog has it or, not refreshed, as the session's cache does."""
        table, spark = table or self.table(), self.spark
        if refresh:
            self.sql(f"REFRESH TABLE {table}")
        assert spark._jvm is not None
        load = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        return load(spark._jsparkSession, table)

    def call(self, procedure: str, table: str = "t", arguments: str = "") -> list[Row]:
        extra = f", {arguments}" if arguments else ""
        return self.run(
            f"CALL {self.catalog}.system.{procedure}(table => '{self.namespace}.{table}'{extra})"
        )

    def assert_encrypted(self, after: str = "") -> None:
        """No file of the namespace is plaintext, and none holds the marker."""
        problems = []
        for path in files_below(self.folder):
            stat = path.stat()
            known = (path, stat.st_size, stat.st_mtime_ns)
            if known in self._seen:
                continue
            problem = plaintext_problem(path)
            if problem is None:
                self._seen.add(known)
            else:
                problems.append(problem)
        assert not problems, "\n".join([f"after {after}", *problems])

    def refused(self, statement: str, *words: str) -> str:
        """The statement must fail, name each of the words, give a hint, and touch no file. Returns the error's text."""
        with untouched(self.warehouse), pytest.raises(Exception) as caught:
            self.sql(statement)
        text = str(caught.value)
        missing = [word for word in (*words, "hint:") if word not in text]
        assert not missing, f"{statement}: no {missing} in the error:\n{text[:3000]}"
        self.assert_encrypted(statement)
        return text

    @contextmanager
    def configured(self, setting: str, value: str) -> Iterator[None]:
        """A setting of the session, for a while."""
        self.spark.conf.set(setting, value)
        try:
            yield
        finally:
            self.spark.conf.unset(setting)

    def with_options(self, options: dict[str, str], without: Iterable[str] = ()) -> "Lake":
        """The same kind of catalog under a new name and with other options; nothing loads it before its first use."""
        every = self.world.ours(self.kind)
        if options.get("encryption.kms-type", "keystore") != "keystore":  # a KMS refuses another's
            every = {k: v for k, v in every.items() if not k.startswith("encryption.kms.keystore.")}
        every |= options
        for key in without:
            every.pop(key, None)
        name = f"{self.catalog}_{uuid.uuid4().hex[:6]}"
        implementation = self.spark.conf.get(f"spark.sql.catalog.{self.catalog}")
        assert implementation is not None
        for key, value in catalog_conf(name, implementation, every).items():
            self.spark.conf.set(key, value)
        other = object.__new__(Lake)
        other.__dict__.update(self.__dict__, catalog=name, _seen=set())
        return other


def key_of(argument: str) -> str:
    """write_merge_mode -> write.merge.mode, format__version -> format-version."""
    return argument.replace("__", "-").replace("_", ".")


def tblproperties(properties: dict[str, str]) -> str:
    every = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    return f"TBLPROPERTIES ({every})" if every else ""
