"""Many of a thing: readers at once, tables, snapshots."""

from concurrent.futures import ThreadPoolExecutor

from suite.measures.tables import many_files, tables_of
from suite.peers import Iceberg, Peer
from suite.registry import CATALOGS, PAIR, Bench, Run, measure

READERS = {False: 20, True: 200}
OPENED = {False: 50, True: 1_000}
SNAPSHOTS = {False: 100, True: 2_000}
"""In quick and in full mode."""


@measure("scale", "20 readers at once (full: 200)", PAIR)
def readers(bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    table, tables = many_files(bench, peer, "planned_10", 10), tables_of(bench)
    count = READERS[bench.full]

    def body() -> None:
        with ThreadPoolExecutor(count) as pool:
            assert set(pool.map(lambda _: tables.plan(table), range(count))) == {10}

    return Run(body)


@measure("scale", "50 tables opened and planned (full: 1,000)", PAIR)
def tables_opened(bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    bench.table(peer, "opened", "region", files=1)
    tables = tables_of(bench)
    names = [f"opened_{i}" for i in range(OPENED[bench.full])]
    if bench.once(peer, "opened many"):
        rows = bench.data.rows("region")
        for name in names:
            peer.create(bench.spark, name, rows)
            tables.touch(peer.java(bench.spark, name))

    def body() -> None:
        for name in names:
            bench.spark.sql(f"REFRESH TABLE {peer.table(name)}")
            tables.plan(peer.java(bench.spark, name))

    return Run(body)


def of_many_snapshots(bench: Bench, peer: Peer) -> Iceberg:
    """The peer, with a table of so many snapshots, `old`."""
    assert isinstance(peer, Iceberg)
    bench.table(peer, "old", "region", files=1)
    if bench.once(peer, "old snapshots"):
        tables_of(bench).touch(peer.java(bench.spark, "old"), SNAPSHOTS[bench.full] - 1)
    return peer


@measure("scale", "load a table of 100 snapshots (full: 2,000)", CATALOGS, unit="ms")
def load(bench: Bench, peer: Peer) -> Run:
    table = of_many_snapshots(bench, peer).table("old")

    def body() -> None:
        bench.spark.sql(f"REFRESH TABLE {table}")
        bench.spark.table(table)

    return Run(body)


@measure("scale", "commit to a table of 100 snapshots (full: 2,000)", CATALOGS, unit="ms")
def commit(bench: Bench, peer: Peer) -> Run:
    table, tables = of_many_snapshots(bench, peer).java(bench.spark, "old"), tables_of(bench)
    return Run(lambda: tables.touch(table))


@measure("scale", "expire one of 100 snapshots (full: 2,000)", PAIR)
def expire(bench: Bench, peer: Peer) -> Run:
    old = of_many_snapshots(bench, peer)
    catalog, name = old.table("old").split(".", 1)
    table, tables = old.java(bench.spark, "old"), tables_of(bench)

    def before() -> None:
        tables.touch(table)
        bench.spark.sql(f"REFRESH TABLE {catalog}.{name}")

    def body() -> None:
        bench.spark.sql(
            f"CALL {catalog}.system.expire_snapshots(table => '{name}',"
            f" older_than => TIMESTAMP '2999-01-01', retain_last => {SNAPSHOTS[bench.full]})"
        ).collect()

    return Run(body, before)
