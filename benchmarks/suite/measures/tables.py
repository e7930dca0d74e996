"""What tables go through: changes of rows, streams, maintenance, commits, planning, verification."""

import shutil
from functools import partial
from typing import Any

from pyspark_iceberg_crypto import verify_table
from suite.peers import Iceberg, Peer
from suite.registry import CATALOGS, PAIR, Bench, Run, measure, noop

BATCHES = 5
PLANNED_FILES = {10: False, 1_000: False, 50_000: True}
"""Numbers of files, and whether only the full mode has them."""


def tables_of(bench: Bench) -> Any:
    jvm: Any = bench.spark._jvm
    return jvm.io.icebergcrypto.benchmarks.Tables


@measure("merge", "MERGE, 1 % of the orders", PAIR)
def merge(bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    bench.table(peer, "merged", "orders")
    changes = bench.data.rows("orders").where("o_orderkey % 100 = 1").persist()
    changes.createOrReplaceTempView("changes")

    def body() -> None:
        bench.spark.sql(
            f"MERGE INTO {peer.table('merged')} t USING changes c ON t.o_orderkey = c.o_orderkey WHEN MATCHED THEN "
            "UPDATE SET o_totalprice = t.o_totalprice + 1 WHEN NOT MATCHED THEN INSERT *"
        )

    return Run(body)


@measure("stream", f"stream, {BATCHES} micro-batches", PAIR)
def stream(bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    source, checkpoint = bench.folder / "stream", bench.folder / "checkpoint"
    rows = bench.data.rows("orders").limit(10_000)
    if not source.exists():
        rows.repartition(BATCHES).write.parquet(str(source))

    def before() -> None:
        shutil.rmtree(checkpoint, ignore_errors=True)
        peer.create(bench.spark, "streamed", rows)

    def body() -> None:
        reader = bench.spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", "1")
        writer = reader.parquet(str(source)).writeStream.trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint)).toTable(peer.table("streamed"))
        query.awaitTermination()

    return Run(body, before)


@measure("rewrite", "rewrite_data_files, 20 files into one", PAIR)
def rewrite(bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    rows = bench.data.rows("orders").repartition(20).persist()
    catalog, name = peer.table("rewritten").split(".", 1)

    def before() -> None:
        peer.create(bench.spark, "rewritten", rows)
        peer.append(bench.spark, "rewritten", rows)

    def body() -> None:
        bench.spark.sql(
            f"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
        ).collect()

    return Run(body, before)


@measure("commit", "commit of one file", CATALOGS, unit="ms")
def commit(bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    bench.table(peer, "committed", "region", files=1)
    table, tables = peer.java(bench.spark, "committed"), tables_of(bench)
    file = tables.first(table)

    def body() -> None:
        tables.list(table, file, 1, 1)

    return Run(body)


def planning(files: int, bench: Bench, peer: Peer) -> Run:
    assert isinstance(peer, Iceberg)
    name = f"planned_{files}"
    table, tables = many_files(bench, peer, name, files), tables_of(bench)

    def body() -> None:
        assert tables.plan(table) == files

    return Run(body)


def many_files(bench: Bench, peer: Iceberg, name: str, files: int) -> Any:
    """A table of so many files, of which one exists."""
    bench.table(peer, name, "region", files=1)
    table, tables = peer.java(bench.spark, name), tables_of(bench)
    if bench.once(peer, f"{name} listed"):
        tables.list(table, tables.first(table), files - 1, max(100, files // 10))
    return table


for _files, _full in PLANNED_FILES.items():
    measure("planning", f"plan {_files:,} files", PAIR, unit="ms", full_only=_full)(
        partial(planning, _files)
    )


def verifying(flags: dict[str, Any], bench: Bench, peer: Peer) -> Run:
    """Of a plaintext peer: a scan of the same rows, to compare with."""
    assert isinstance(peer, Iceberg)
    table = bench.table(peer, "lineitem")
    if not peer.encrypted:
        return Run(lambda: noop(table))

    def body() -> None:
        with verify_table(bench.spark, peer.table("lineitem"), progress=False, **flags) as found:
            assert found.ok, found

    return Run(body)


for _depth, _flags in (("magic", {}), ("structure", {"structure": True}), ("deep", {"deep": True})):
    measure("verify", f"verify lineitem, {_depth}, beside a scan", ("plaintext", "hive"))(
        partial(verifying, _flags)
    )
