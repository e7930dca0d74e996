"""Throughput: writing rows that are in memory, and reading tables."""

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from suite.data import WRITTEN_ROWS
from suite.peers import Peer
from suite.registry import CATALOGS, COLUMNS, FILES, FORMATS, PAIR, Bench, Run, measure, noop

SMALL_FILES = {False: 64, True: 1000}
"""How many files the table of small files has, in quick and in full mode."""


def written(bench: Bench, name: str) -> DataFrame:
    """Rows in memory, so that only writing them is measured."""
    rows = bench.data.rows(name).limit(WRITTEN_ROWS[bench.full]).repartition(2)
    cached = rows.persist(StorageLevel.MEMORY_ONLY)
    cached.count()
    return cached


def writing(bench: Bench, peer: Peer, rows: str, file_format: str) -> Run:
    name = f"written_{rows}_{file_format}"
    source = written(bench, rows)

    def body() -> None:
        peer.append(bench.spark, name, source)

    return Run(body, lambda: peer.create(bench.spark, name, source, file_format))


@measure("write", "write lineitem, Parquet", FORMATS, target=1.02, rows="written")
def write_parquet(bench: Bench, peer: Peer) -> Run:
    return writing(bench, peer, "lineitem", "parquet")


@measure("write", "write lineitem, Avro", PAIR, target=1.02, rows="written")
def write_avro(bench: Bench, peer: Peer) -> Run:
    return writing(bench, peer, "lineitem", "avro")


@measure("write", "write 2 columns, Parquet", PAIR, target=1.02, rows="written")
def write_narrow(bench: Bench, peer: Peer) -> Run:
    return writing(bench, peer, "narrow", "parquet")


@measure("write", "write 200 columns, Parquet", PAIR, target=1.02, rows="wide")
def write_wide(bench: Bench, peer: Peer) -> Run:
    return writing(bench, peer, "wide", "parquet")


@measure("scan", "scan lineitem, Parquet", FORMATS, target=1.03, rows="lineitem")
def scan_parquet(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "lineitem")
    return Run(lambda: noop(table))


@measure("scan", "scan 1 of 16 columns, Parquet", (*PAIR, *FILES), target=1.05, rows="lineitem")
def scan_one_column(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "lineitem")
    return Run(lambda: noop(table.select("l_extendedprice")))


@measure("scan", "scan lineitem, Avro", PAIR, target=1.02, rows="lineitem")
def scan_avro(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "lineitem_avro", "lineitem", "avro")
    return Run(lambda: noop(table))


@measure("scan", "scan flights, Parquet", PAIR, target=1.03, rows="flights")
def scan_flights(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "flights")
    return Run(lambda: noop(table))


@measure("scan", "scan 200 columns, Parquet", PAIR, target=1.03, rows="wide")
def scan_wide(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "wide")
    return Run(lambda: noop(table))


@measure("scan", "scan 1 of 200 columns, Parquet", PAIR, target=1.05, rows="wide")
def scan_one_of_wide(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "wide")
    return Run(lambda: noop(table.select("c7")))


@measure("scan", "scan small files, Parquet", PAIR, target=1.03, rows="flights")
def scan_small_files(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "small_files", "flights", files=SMALL_FILES[bench.full])
    return Run(lambda: noop(table))


@measure("columns", "write 10,000 rows of lineitem, Parquet", COLUMNS, rows="few")
def write_few(bench: Bench, peer: Peer) -> Run:
    return writing(bench, peer, "few", "parquet")


@measure("columns", "scan 10,000 rows of lineitem, Parquet", COLUMNS, rows="few")
def scan_few(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "few")
    return Run(lambda: noop(table))


@measure("lookup", "look up one order in lineitem", CATALOGS)
def look_up(bench: Bench, peer: Peer) -> Run:
    table = bench.table(peer, "lineitem")

    def body() -> None:
        number = bench.random.randrange(1, int(1_500_000 * bench.data.scale))
        key = number >> 3 << 5 | number & 7  # dbgen leaves gaps
        assert table.where(f"l_orderkey = {key}").collect()

    return Run(body)
