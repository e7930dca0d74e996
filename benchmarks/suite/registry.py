"""Measures: each a small function that prepares a peer and returns what is timed."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.world import World
from pyspark.sql import DataFrame, SparkSession

from suite.data import Data
from suite.peers import Peer

PAIR = ("plaintext", "stock", "hive")
CATALOGS = (*PAIR, "plaintext-rest", "rest", "plaintext-jdbc", "jdbc", "plaintext-hadoop", "hadoop")
FILES = ("parquet", "parquet-crypto", "orc", "orc-crypto")
FORMATS = (*CATALOGS, *FILES)
COLUMNS = ("plaintext", "hive", "columns")
EVERYONE = (*FORMATS, "columns")


@dataclass(frozen=True)
class Run:
    """What one peer does in one round.

    Attributes:
        body: is timed; what it returns, if anything, is the value instead of its seconds.
        before: makes it ready for another time, untimed.
    """

    body: Callable[[], float | None]
    before: Callable[[], None] | None = None


@dataclass
class Bench:
    """What measures work with."""

    spark: SparkSession
    world: World
    data: Data
    peers: dict[str, Peer]
    full: bool
    random: random.Random
    folder: Path
    _made: set[tuple[str, str]] = field(default_factory=set)

    def table(
        self, peer: Peer, name: str, rows: str = "", file_format: str = "parquet", files: int = 2
    ) -> DataFrame:
        """A peer's table, made at the first request: with rows of that name, in so many files."""
        if (peer.name, name) not in self._made:
            source = self.data.rows(rows or name)
            peer.create(self.spark, name, source, file_format)
            peer.append(self.spark, name, source.repartition(files))
            check_encryption(peer, Path(peer.file(self.spark, name)))
            self._made.add((peer.name, name))
        return peer.read(self.spark, name)

    def once(self, peer: Peer, what: str) -> bool:
        """Whether this is asked for the first time."""
        new = (peer.name, what) not in self._made
        self._made.add((peer.name, what))
        return new


def check_encryption(peer: Peer, file: Path) -> None:
    """Nobody is faster because nothing was encrypted."""
    with file.open("rb") as opened:
        magic = opened.read(4)
    if (magic in (b"PARE", b"AGS1")) != peer.encrypted_by_format():
        raise AssertionError(f"{peer.name}: {file.name} begins with {magic!r}")


Prepare = Callable[[Bench, Peer], Run]


@dataclass(frozen=True)
class Measure:
    """A line of the results.

    Attributes:
        name: what is measured.
        group: what --only chooses.
        unit: of the values: s, ms, MB. Less is better.
        peers: those it applies to.
        prepare: makes a peer ready.
        target: of the ratio encrypted to plaintext, for this project's peers.
        total: the line that adds up this one with others.
        rows: how many rows the body writes or reads, for the throughput.
        full_only: left to the full mode.
    """

    name: str
    group: str
    unit: str
    peers: tuple[str, ...]
    prepare: Prepare
    target: float | None = None
    total: str | None = None
    rows: str | None = None
    full_only: bool = False


MEASURES: list[Measure] = []


def measure(
    group: str,
    name: str,
    peers: tuple[str, ...] = PAIR,
    *,
    unit: str = "s",
    target: float | None = None,
    total: str | None = None,
    rows: str | None = None,
    full_only: bool = False,
) -> Callable[[Prepare], Prepare]:
    """Registers the function below it."""

    def register(prepare: Prepare) -> Prepare:
        MEASURES.append(Measure(name, group, unit, peers, prepare, target, total, rows, full_only))
        return prepare

    return register


def noop(rows: DataFrame) -> None:
    """Reads all of it, and keeps nothing."""
    rows.write.format("noop").mode("overwrite").save()
