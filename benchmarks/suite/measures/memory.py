"""What the JVM allocates: a figure that other work on the machine does not change."""

from collections.abc import Callable

from suite.measures.tables import many_files, tables_of
from suite.peers import Iceberg, Peer
from suite.registry import PAIR, Bench, Run, measure, noop


def allocating(bench: Bench, work: Callable[[], object]) -> Run:
    tables = tables_of(bench)

    def body() -> float:
        start = int(tables.allocated())
        work()
        return max(int(tables.allocated()) - start, 1) / 1e6

    return Run(body)


@measure("memory", "allocated by a scan of lineitem, Parquet", PAIR, unit="MB")
def by_a_scan(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "lineitem")
    return allocating(bench, lambda: noop(table))


@measure("memory", "allocated by planning 1,000 files", PAIR, unit="MB")
def by_planning(bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    table, tables = many_files(bench, peer, "planned_1000", 1_000), tables_of(bench)
    return allocating(bench, lambda: tables.plan(table))
