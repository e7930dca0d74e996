"""Many of a thing at once: readers, tables."""

from concurrent.futures import ThreadPoolExecutor

from suite.measures.tables import many_files, tables_of
from suite.peers import Iceberg, Peer
from suite.registry import PAIR, Bench, Run, measure

READERS = {False: 20, True: 200}
OPENED = {False: 50, True: 1_000}


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
            tables.touch(peer.java(bench.spark, name), 1)

    def body() -> None:
        for name in names:
            bench.spark.sql(f"REFRESH TABLE {peer.table(name)}")
            tables.plan(peer.java(bench.spark, name))

    return Run(body)
