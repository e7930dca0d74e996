"""TPC-H: each query, and all of them."""

from functools import partial

from suite.data import TABLES, queries
from suite.peers import Iceberg, Peer
from suite.registry import PAIR, Bench, Run, measure, noop

TOTAL = "TPC-H, all 22 queries"


def query(number: str, bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    for table in TABLES:
        bench.table(peer, table)
    text = queries(bench.data.scale)[number]

    def body() -> None:
        bench.spark.sql(f"USE {peer.namespace}")
        noop(bench.spark.sql(text))

    return Run(body)


for _name in queries(1):
    measure("tpch", f"TPC-H {_name}", PAIR, target=1.03, total=TOTAL)(partial(query, _name))
