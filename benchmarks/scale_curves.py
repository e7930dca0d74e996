"""What a table's size costs the driver: loads, commits, planning, expiry, many readers, many tables, as curves.

    python benchmarks/scale_curves.py [--small] [--rounds N] [--snapshots N] [--plot FILE.svg]

Tables of plaintext Iceberg, of stock Iceberg's encryption and of this project, all on the Hive catalog of one Spark
session on two cores, grow by Iceberg's Java API: to 2,000 snapshots, to 50,000 data files (links to one file), to
1,000 tables and 200 readers (--small: a tenth; --snapshots N: only loads and commits, at N snapshots). At each size
each peer is measured N times (5), in random order, after two turns to warm up. Prints medians and ranges, and encrypted
to plaintext. Megabytes are what all threads of the JVM allocated meanwhile. --plot draws the curves (needs the extra
`bench`).
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _spark import java_table
from suite.session import session

PEERS = {"plaintext": "plain_hive", "stock": "stock_hive", "iceberg-crypto": "enc_hive"}
"""Catalogs of one metastore: each has a namespace of its own."""
SNAPSHOTS = (20, 100, 500, 2_000)
FILES = (10, 1_000, 10_000, 50_000)
READERS = (1, 20, 200)
TABLES = (10, 100, 1_000)
WARM_UP = 2


@dataclass
class Point:
    """What one peer took at one size, in each round: seconds, and bytes allocated."""

    what: str
    peer: str
    size: int
    seconds: list[float]
    allocated: list[int]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


class Scale:
    """The session, with a table `t` of each peer that grows."""

    def __init__(self, spark: Any, rounds: int) -> None:
        self.spark, self.rounds, self.points = spark, rounds, list[Point]()
        self.java: Any = spark._jvm
        self.tables = self.java.io.icebergcrypto.benchmarks.Tables
        for catalog in PEERS.values():
            spark.sql(f"CREATE NAMESPACE {catalog}.{catalog}_scale")

    def make(self, name: str, *, file: bool = True) -> None:
        """A table of each peer, with a file or with an empty commit."""
        for peer, catalog in PEERS.items():
            key = "" if peer == "plaintext" else ", 'encryption.key-id'='k1'"
            self.spark.sql(
                f"CREATE TABLE {catalog}.{catalog}_scale.{name} (id BIGINT, note STRING) USING iceberg"
                f" TBLPROPERTIES ('format-version'='3', 'commit.manifest-merge.enabled'='false',"
                f" 'write.metadata.delete-after-commit.enabled'='true'{key})"
            )
            if file:
                self.spark.sql(f"INSERT INTO {catalog}.{catalog}_scale.{name} VALUES (1, 'a')")
            else:
                self.tables.touch(self.load(peer, name))

    def load(self, peer: str, name: str) -> Any:
        """Iceberg's own Table, loaded again."""
        catalog = PEERS[peer]
        table = f"{catalog}.{catalog}_scale.{name}"
        self.spark.sql(f"REFRESH TABLE {table}")
        return java_table(self.spark, table)

    def measure(
        self,
        what: str,
        size: int,
        body: Callable[[str], object],
        before: Callable[[str], object] = lambda peer: None,
    ) -> None:
        points = {peer: Point(what, peer, size, [], []) for peer in PEERS}
        for turn in range(WARM_UP + self.rounds):
            for peer in random.sample(list(PEERS), len(PEERS)):
                before(peer)
                allocated, start = self.tables.allocated(), time.perf_counter()
                body(peer)
                seconds = time.perf_counter() - start
                if turn >= WARM_UP:
                    points[peer].seconds.append(seconds)
                    points[peer].allocated.append(self.tables.allocated() - allocated)
        self.points += points.values()
        print(line(what, size, points), flush=True)

    def snapshots(self, sizes: tuple[int, ...], *, expire: bool = True) -> None:
        self.make("old")
        for size, before in zip(sizes, (1, *sizes), strict=False):
            tables = {peer: self.load(peer, "old") for peer in PEERS}
            for table in tables.values():
                self.tables.touch(table, size - before)
            self.measure("load, by snapshots", size, lambda peer: self.load(peer, "old"))
            self.measure(
                "commit, by snapshots", size, lambda peer, t=tables: self.tables.touch(t[peer])
            )
            if not expire:
                continue
            self.measure(
                "expire one, by snapshots",
                size,
                lambda peer, keep=size: self.expire(peer, keep),
                lambda peer: self.tables.touch(self.load(peer, "old")),
            )

    def expire(self, peer: str, keep: int) -> None:
        self.spark.sql(
            f"CALL {PEERS[peer]}.system.expire_snapshots(table => '{PEERS[peer]}_scale.old',"
            f" older_than => TIMESTAMP '2999-01-01', retain_last => {keep})"
        ).collect()

    def files(self, sizes: tuple[int, ...]) -> None:
        self.make("wide")
        tables = {peer: self.load(peer, "wide") for peer in PEERS}
        first = {peer: self.tables.first(table) for peer, table in tables.items()}
        for size, before in zip(sizes, (1, *sizes), strict=False):
            for peer, table in tables.items():
                self.tables.list(table, first[peer], size - before, 5_000)
            self.measure("plan, by data files", size, lambda peer: self.plan(peer, "wide"))

    def plan(self, peer: str, name: str) -> int:
        return int(self.tables.plan(self.load(peer, name)))

    def readers(self, sizes: tuple[int, ...]) -> None:
        self.make("read")
        for size in sizes:
            with ThreadPoolExecutor(size) as pool:
                self.measure(
                    "plan at once, by readers",
                    size,
                    lambda peer, p=pool, n=size: list(
                        p.map(self.tables.plan, [self.load(peer, "read")] * n)
                    ),
                )

    def many(self, sizes: tuple[int, ...]) -> None:
        made = 0
        for size in sizes:
            for number in range(made, size):
                self.make(f"t{number}", file=False)
            made = size
            self.measure(
                "open and plan each, by tables",
                size,
                lambda peer, n=size: [self.plan(peer, f"t{i}") for i in range(n)],
            )


def line(what: str, size: int, points: dict[str, Point]) -> str:
    plain = points["plaintext"]
    found = [f"{what:30} {size:>7,}"]
    for peer, point in points.items():
        ratio = "" if point is plain else f" = {point.median / plain.median:.2f}"
        found.append(
            f"{peer} {1000 * point.median:,.0f} ms ({1000 * min(point.seconds):,.0f} to "
            f"{1000 * max(point.seconds):,.0f}){ratio}, {statistics.median(point.allocated) / 1e6:,.1f} MB"
        )
    return "   ".join(found)


def draw(points: list[Point], plot: Path) -> None:
    from matplotlib import pyplot, ticker

    panels = list(dict.fromkeys(point.what for point in points))
    figure, grid = pyplot.subplots(2, -(-len(panels) // 2), figsize=(11, 6), squeeze=False)
    for axes, what in zip(grid.flat, panels, strict=False):
        for peer in PEERS:
            own = [point for point in points if (point.what, point.peer) == (what, peer)]
            sizes = [point.size for point in own]
            low, high = ([1000 * f(point.seconds) for point in own] for f in (min, max))
            axes.fill_between(sizes, low, high, alpha=0.2)
            axes.plot(sizes, [1000 * point.median for point in own], marker="o", label=peer)
        axes.set(xscale="log", yscale="log", title=what.capitalize(), ylabel="ms")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_minor_formatter(ticker.LogFormatter(minor_thresholds=(1, 0.4)))
        axes.grid(alpha=0.3)
    grid.flat[0].legend()
    figure.tight_layout()
    figure.savefig(plot, metadata={"Date": None})


def smaller(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({max(1, size // 10) for size in sizes} | {sizes[0]}))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a tenth of each size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--snapshots", type=int, metavar="N", help="only loads and commits, at N")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    given = parser.parse_args(arguments)
    with session(2, "4g") as (spark, _):
        scale = Scale(spark, given.rounds)
        if given.snapshots:
            scale.snapshots((given.snapshots,), expire=False)
            return
        for step, sizes in (
            (scale.files, FILES),
            (scale.readers, READERS),
            (scale.snapshots, SNAPSHOTS),
            (scale.many, TABLES),
        ):
            step(smaller(sizes) if given.small else sizes)
            if given.plot:
                draw(scale.points, given.plot)


if __name__ == "__main__":
    main(sys.argv[1:])
