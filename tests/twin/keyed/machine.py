"""A history: columns, keys and their source are drawn, then writes; after each, all bytes are searched."""

import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from harness.counts import told
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    IcebergCryptoError,
    Keystore,
    NotSupportedError,
    OrcKeys,
    typed_errors,
)
from pyspark_iceberg_crypto._names import quoted
from twin.keyed.columns import Marked, Table, draw_columns, write_source
from twin.keyed.search import Search
from twin.keyed.settings import (
    SOURCES,
    Keys,
    configured,
    draw_parquet,
    parquet_keys,
    writer,
)
from twin.keyed.writers import AT_ONCE, TO_FOLDERS, TO_TABLES, Target, Writer
from twin.operations.base import Draw

FORMATS = ("parquet", "orc")
COMPRESSIONS = ("none", "snappy", "zstd")


@dataclass
class Counts:
    """Of one run."""

    histories: int = 0
    steps: int = 0
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    both: Counter[str] = field(default_factory=Counter)
    settings: Counter[str] = field(default_factory=Counter)
    denied: int = 0

    def __str__(self) -> str:
        return (
            f"{self.histories} histories, {self.steps} steps, {self.denied} columns denied\nsettings: "
            f"{told(self.settings)}\ndone: {told(self.done)}\nrefused: {told(self.refused)}\nrefused without keys, "
            f"too: {told(self.both)}\nnever tried: {', '.join(sorted(self.never)) or 'nothing'}"
        )

    @property
    def never(self) -> set[str]:
        every = {combination(fmt, one) for fmt in FORMATS for one in WRITERS}
        refused = {name.partition(":")[0] for name in self.refused}
        return every - self.done.keys() - refused - self.both.keys()


WRITERS = (*TO_FOLDERS, *TO_TABLES)


def combination(fmt: str, one: Writer) -> str:
    return f"{fmt} {one.__name__}"


class LeakError(AssertionError):
    """Bytes that hold a value of a column with a key."""


class KeyedHistory(RuleBasedStateMachine):
    """One history; a test makes a class of it."""

    spark: ClassVar[SparkSession]
    store: ClassVar[Keystore]
    folder: ClassVar[Path]
    source: ClassVar[Path]
    search: ClassVar[Search]
    counts: ClassVar[Counts]
    sabotaged: ClassVar[bool] = False

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        draw = Draw(data)
        self.start(draw, draw.pick(("parquet", "parquet", "orc")))

    def start(self, draw: Draw, fmt: str) -> None:
        """Draws columns, keys and their source."""
        self.counts.histories += 1
        self.format = fmt
        drawn = draw_parquet(draw)
        source = draw.pick(SOURCES)
        uniform = self.format == "parquet" and bool(drawn["uniform"])
        complete = self.format == "parquet" and bool(drawn["complete"])
        columns = draw_columns(draw, orc=self.format == "orc", uniform=uniform, complete=complete)
        self.name = uuid.uuid4().hex[:10]
        self.table: Table = write_source(columns, self.source / self.name)
        self.script = [f"# {self.format}, keys from {source}", *map(str, columns)]
        self.keys: Keys | None = None
        try:
            if self.format == "orc":
                named = {quoted(c.name): c.key or "" for c in columns if c.named}
                self.keys = Keys(None, OrcKeys(columns=named, missing_keys="fail"), source, ())
            else:
                self.keys = Keys(parquet_keys(drawn, columns), None, source, ())
                self.script.append(str(self.keys.parquet))
        except IcebergCryptoError as error:  # a name that the settings cannot express
            self.counts.refused[f"{self.format} settings: {type(error).__name__}"] += 1
            return
        told = [self.format, f"keys from {source}"]
        if self.keys.parquet:
            told += [f"{name} {value}" for name, value in drawn.items()]
        self.counts.settings.update(told + [column.kind for column in columns])
        self.search.forget()

    @rule(data=st.data())
    def step(self, data: Any) -> None:
        draw = Draw(data)
        self.write(draw, draw.pick(WRITERS))

    def write(self, draw: Draw, one: Writer) -> None:
        partitioned, compression = draw.flag(), draw.pick(COMPRESSIONS)
        if not self.keys:
            return
        self.counts.steps += 1
        self.script.append(f"{one.__name__}, partitioned={partitioned}, {compression}")
        try:
            self.run(one, partitioned, compression)
        except Exception as error:
            text = "\n".join([type(error).__name__, str(error)[:3000], *self.script])
            kind = LeakError if isinstance(error, LeakError) else AssertionError
            raise kind(text) from error

    def run(self, one: Writer, partitioned: bool, compression: str) -> None:
        """On both sides, and what must hold then."""
        assert self.keys
        name = f"{one.__name__}_{self.counts.steps}"
        with writer(self.spark, self.store, self.folder, self.keys) as (session, options):
            ours = Target(
                session,
                self.format,
                self.folder / self.name / name,
                self.table.source,
                self._without_keys(options) if self.sabotaged else options,
                f"spark_catalog.default.ours_{self.name}_{name}",
                partitioned,
                compression,
            )
            error = self.attempt(one, ours)
            self.nothing_found()
            written = None if error else self.rows(ours.read())
            if not error:
                self.analyzed(ours)
            session.sql(f"DROP TABLE IF EXISTS {ours.table}")
        what = combination(self.format, one)
        if error and typed(error):
            self.counts.refused[f"{what}: {type(error).__name__}"] += 1
            self.script.append(f"# refused: {str(error).splitlines()[0]}")
            left = [path for path in ours.folder.rglob("part-*") if path.stat().st_size]
            assert one not in AT_ONCE or not left, f"a refused write left {left}"
            return
        twin = replace(
            ours,
            spark=self.spark.newSession(),
            folder=self.source / self.name / name,
            options={},
            table=ours.table.replace("ours_", "twin_"),
        )
        without = self.attempt(one, twin)
        if error:
            assert without, f"fails with keys alone: {error}"
            self.counts.both[what] += 1
            return
        assert not without, f"fails without keys alone: {without}"
        self.counts.done[what] += 1
        assert written == self.rows(twin.read())
        twin.spark.sql(f"DROP TABLE IF EXISTS {twin.table}")
        self.others(ours)

    def attempt(self, one: Writer, target: Target) -> Exception | None:
        try:
            with typed_errors():
                one(target)
        except Exception as error:  # noqa: BLE001 (Spark's own are compared)
            return error
        return None

    def _without_keys(self, options: dict[str, str]) -> dict[str, str]:
        """The guard off, and no keys."""
        assert self.keys
        none = {
            name: "" for name in self.keys.options if name.endswith((".key", ".keys", "encrypt"))
        }
        return {**options, **none, f"iceberg-crypto.{self.format}.plaintext-writes": "allow"}

    def analyzed(self, ours: Target) -> None:
        """Of numbers, statistics have the smallest and largest: they must not be in the metastore."""
        told = [c for c in self.table.secret if c.kind in ("number", "decimal", "text", "word")]
        if not told:
            return
        names = ", ".join(quoted(column.name) for column in told)

        def analyze(target: Target) -> None:
            if not target.spark.catalog.tableExists(target.table):
                where = f"USING {target.format} LOCATION '{target.folder}'"
                target.spark.sql(f"CREATE TABLE {target.table} {where}")
            target.spark.sql(f"ANALYZE TABLE {target.table} COMPUTE STATISTICS FOR COLUMNS {names}")
            for column in told:  # a catalog in memory has them, too
                shown = f"DESCRIBE EXTENDED {target.table} {quoted(column.name)}"
                kept = repr(target.spark.sql(shown).collect()).encode()
                if any(needle in kept for needle in column.needles()):
                    raise LeakError(f"statistics have values of {column}")

        what, error = f"{self.format} statistics", self.attempt(analyze, ours)
        if isinstance(error, LeakError):
            raise error
        if error and not isinstance(error, NotSupportedError):
            self.counts.both[what] += 1  # Hive takes no such names
            self.script.append(f"# statistics: {error}")
        else:
            (self.counts.refused if error else self.counts.done)[what] += 1
        self.nothing_found()

    def nothing_found(self) -> None:
        needles = [needle for column in self.table.secret for needle in column.needles()]
        if needles and (found := self.search.find(needles)):
            raise LeakError(f"values of columns with keys are in {found[:5]}")

    def rows(self, frame: DataFrame) -> list[str]:
        names = sorted(frame.columns)
        return sorted(repr(row) for row in frame.select(*map(quoted, names)).collect())

    def others(self, ours: Target) -> None:
        """Who lacks a key, and who has nothing."""
        assert self.keys
        for key in sorted({column.key for column in self.table.named if column.key}):
            allowed = [other for other in ("k1", "k2", "k-128", "k-192") if other != key]
            clerk = configured(self.spark, self.store, self.folder, self.keys, *allowed)
            seen = clerk.read.format(self.format).load(str(ours.folder))
            seen.agg(fn.sum("id")).collect()
            for column in self.table.columns:
                chosen = seen.select(quoted(column.name))
                if column.key != key:
                    chosen.collect()
                    continue
                self.is_denied(chosen, column)
        stranger = self.spark.newSession()
        for column in self.table.secret:
            read = b""
            with suppress(Exception):
                rows = stranger.read.format(self.format).load(str(ours.folder))
                read = repr(rows.select(quoted(column.name)).collect()).encode()
            if any(needle in read for needle in column.needles()):
                raise LeakError(f"{column} is read without keys")

    def is_denied(self, chosen: DataFrame, column: Marked) -> None:
        try:
            with typed_errors():
                chosen.collect()
        except AccessDeniedError:
            self.counts.denied += 1
            return
        raise LeakError(f"{column} is read without its key")


def typed(error: BaseException) -> bool:
    """Whether it is this project's; a stream's has its name in its text."""
    return isinstance(error, IcebergCryptoError) or "io.icebergcrypto." in str(error)
