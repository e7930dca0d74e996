"""What operations ask of a KMS, and how long they take with one that takes its time.

In one JVM: executors of their own would each unwrap a table's KEK once more.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from _spark import java_table
from harness.classes import SPARK_CATALOG
from harness.world import STOCK, catalog_conf

from suite.registry import Bench
from suite.results import verdict
from suite.runner import first_line
from suite.session import with_slow_kms

LATENCIES = {False: (1, 100), True: (1, 20, 100)}
"""Milliseconds, in quick and in full mode."""
PEERS = {"stock": ("hive", STOCK), "hive": ("hive", SPARK_CATALOG), "rest": ("rest", SPARK_CATALOG)}
PEERS |= {kind: (kind, SPARK_CATALOG) for kind in ("jdbc", "hadoop")}
QUICK = ("stock", "hive", "jdbc")
"""In quick mode: REST does what Hive does, and Hadoop what JDBC does, whose metadata is authenticated."""
LATER = (
    "later INSERT",
    "SELECT, same session",
    "INSERT after it",
    "stream of 10 batches",
    "expire_snapshots",
)
"""Steps of a session that has the table's KEK."""
JOINED, OPENED, BATCHES = 5, 50, 10


@dataclass
class KmsCost:
    """Of one operation.

    Attributes:
        waits: how often it had to wait for the KMS; calls at the same time are one wait.
        seconds: of each round.
    """

    peer: str
    step: str
    latency: int
    wraps: int = 0
    unwraps: int = 0
    waits: int = 0
    seconds: list[float] = field(default_factory=list)


class Session:
    """A Spark session whose catalog, and with it the KMS client, is new, as in an application that begins."""

    def __init__(self, bench: Bench, peer: str, namespace: str) -> None:
        self.spark, self._folder = bench.spark.newSession(), bench.folder
        self.catalog, self.namespace = f"kms_{peer}", namespace
        kind, implementation = PEERS[peer]
        options = with_slow_kms(bench.world, kind)
        for key, value in catalog_conf(self.catalog, implementation, options).items():
            self.spark.conf.set(key, value)

    def table(self, name: str) -> str:
        return f"{self.catalog}.{self.namespace}.{name}"

    def create(self, name: str) -> None:
        self.spark.sql(
            f"CREATE TABLE {self.table(name)} (id BIGINT, note STRING) USING iceberg"
            " TBLPROPERTIES ('encryption.key-id'='k1', 'format-version'='3')"
        )

    def insert(self, name: str) -> None:
        self.spark.sql(f"INSERT INTO {self.table(name)} VALUES (1, 'a'), (2, 'b')")

    def select(self, name: str) -> None:
        self.spark.table(self.table(name)).collect()

    def select_each(self, count: int) -> None:
        for i in range(count):
            self.select(f"t{i}")

    def join(self, count: int) -> None:
        others = " ".join(f"JOIN {self.table(f't{i}')} t{i} USING (id)" for i in range(1, count))
        self.spark.sql(f"SELECT id, t0.note FROM {self.table('t0')} t0 {others}").collect()

    def join_data_frames(self, count: int) -> None:
        """Spark loads the table of each when it is made."""
        joined = self.spark.table(self.table("t0"))
        for i in range(1, count):
            joined = joined.join(self.spark.table(self.table(f"t{i}")).select("id"), "id")
        joined.collect()

    def stream(self, name: str) -> None:
        source = self._folder / "kms-stream"
        if not source.exists():
            rows = self.spark.range(100).selectExpr("id", "CAST(id AS STRING) AS note")
            rows.repartition(BATCHES).write.parquet(str(source))
        checkpoint = self._folder / uuid.uuid4().hex
        reader = self.spark.readStream.schema("id BIGINT, note STRING")
        query = (
            reader.option("maxFilesPerTrigger", "1")
            .parquet(str(source))
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", str(checkpoint))
            .toTable(self.table(name))
        )
        query.awaitTermination()

    def drop(self, name: str) -> None:
        self.spark.sql(f"DROP TABLE {self.table(name)}")

    def expire(self, name: str) -> None:
        self.spark.sql(
            f"CALL {self.catalog}.system.expire_snapshots(table => '{self.namespace}.{name}',"
            " older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        ).collect()


class StepFailedError(Exception):
    """Says which step of which peer."""


def kms_costs(bench: Bench, peers: list[str], rounds: int) -> Iterator[dict[str, Any]]:
    """Lines of all operations, latencies and peers.

    Raises:
        StepFailedError: a step did not get through.
    """
    jvm: Any = bench.spark._jvm
    kms = jvm.io.icebergcrypto.benchmarks.SlowKms
    costs: dict[tuple[str, str, int], KmsCost] = {}
    chosen = [peer for peer in PEERS if peer in peers and (bench.full or peer in QUICK)]
    for peer in chosen:
        kms.setLatencyMillis(0)
        run_steps(bench, kms, peer, 0, {})  # to warm up
    many = {peer: make_many(bench, peer) for peer in chosen}
    for latency in LATENCIES[bench.full]:
        for _ in range(rounds):
            bench.random.shuffle(chosen)
            for peer in chosen:
                kms.setLatencyMillis(latency)
                run_steps(bench, kms, peer, latency, costs, many[peer])
        print(f"calls to a KMS of {latency} ms: done", flush=True)
    kms.setLatencyMillis(0)
    ordered = sorted(costs.values(), key=lambda cost: (list(PEERS).index(cost.peer), cost.latency))
    yield from (asdict(cost) for cost in ordered)


def make_many(bench: Bench, peer: str) -> str:
    """A namespace with many tables."""
    namespace = f"kms_many_{peer}"
    session = Session(bench, peer, namespace)
    session.spark.sql(f"CREATE NAMESPACE {session.catalog}.{namespace}")
    jvm: Any = bench.spark._jvm
    for i in range(OPENED):
        session.create(f"t{i}")
        table = java_table(session.spark, session.table(f"t{i}"))
        jvm.io.icebergcrypto.benchmarks.Tables.touch(table)
    return namespace


def run_steps(
    bench: Bench,
    kms: Any,
    peer: str,
    latency: int,
    costs: dict[tuple[str, str, int], KmsCost],
    many: str = "",
) -> None:
    namespace = f"kms_{uuid.uuid4().hex[:8]}"

    def new_session() -> Session:
        return Session(bench, peer, namespace)

    def step(name: str, work: Callable[[], None]) -> None:
        kms.take()
        start = time.perf_counter()
        try:
            work()
        except Exception as error:
            raise StepFailedError(f"{peer}, {name}: {first_line(error)}") from error
        seconds = time.perf_counter() - start
        wraps, unwraps, waits = kms.take()
        cost = costs.setdefault((peer, name, latency), KmsCost(peer, name, latency))
        cost.wraps, cost.unwraps = max(cost.wraps, wraps), max(cost.unwraps, unwraps)
        cost.waits = max(cost.waits, waits)
        cost.seconds.append(seconds)

    first = new_session()
    first.spark.sql(f"CREATE NAMESPACE {first.catalog}.{namespace}")
    step("CREATE", lambda: first.create("t0"))
    step("first INSERT", lambda: first.insert("t0"))
    step("later INSERT", lambda: first.insert("t0"))
    step("SELECT, same session", lambda: first.select("t0"))
    second = new_session()
    step("SELECT, new session", lambda: second.select("t0"))
    step("INSERT after it", lambda: second.insert("t0"))
    step("stream of 10 batches", lambda: second.stream("t0"))
    step("expire_snapshots", lambda: second.expire("t0"))
    if many:
        third = Session(bench, peer, many)
        step("join of 5 tables, new session", lambda: third.join(JOINED))
        fourth = Session(bench, peer, many)
        step("join of 5 DataFrames, new session", lambda: fourth.join_data_frames(JOINED))
        fifth = Session(bench, peer, many)
        step("50 tables opened, new session", lambda: fifth.select_each(OPENED))
    step("DROP", lambda: second.drop("t0"))


def targets(costs: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Each target, what was found, and the verdict."""
    by = {(cost["peer"], cost["step"]): cost for cost in costs}
    found = []
    for peer in [peer for peer in PEERS if peer != "stock" and (peer, "CREATE") in by]:
        own = {step: cost for (name, step), cost in by.items() if name == peer}
        stock = {step: cost for (name, step), cost in by.items() if name == "stock"}
        found += [(f"{peer}: {what}", calls, word) for what, calls, word in targets_of(own, stock)]
    return found


def targets_of(
    own: Mapping[str, dict[str, Any]], stock: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    """Of one peer, by the costs of its steps and of stock's."""
    if stock:
        wraps, unwraps = (
            sum(own[step][call] - stock[step][call] for step in ("CREATE", "first INSERT"))
            for call in ("wraps", "unwraps")
        )
        yield (
            "CREATE and first INSERT: at most one wrap and one unwrap more than stock",
            f"{wraps:+d} wraps, {unwraps:+d} unwraps",
            verdict(wraps <= 1 and unwraps <= 1),
        )
    calls = sum(own[step]["wraps"] + own[step]["unwraps"] for step in LATER)
    yield "nothing later in a session calls the KMS", f"{calls} calls", verdict(calls == 0)
    once = own["SELECT, new session"]["unwraps"]
    yield "a new session unwraps a KEK once", f"{once} unwraps", verdict(once == 1)
    joined = own["join of 5 tables, new session"]
    yield (
        "a join of 5 tables opens their keys at the same time",
        f"{joined['unwraps']} unwraps, {joined['waits']} waits",
        verdict(joined["unwraps"] == JOINED and joined["waits"] == 1),
    )
