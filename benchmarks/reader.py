"""What encryption costs in Python without Spark, beside PyIceberg alone on the same rows in plaintext.

    python benchmarks/reader.py [ROUNDS [MEGABYTES]]

Writes two tables of the same rows, about so many megabytes in eight Parquet files (zstd), into a SQL catalog of
PyIceberg, one of them encrypted; no Spark, no JVM, local disk. In each round both have their turn, in random order.
Prints medians and quartiles of seconds and of CPU seconds of the process, and ratios (encrypted to plaintext of the
same round: median and 90 % interval) of scans to Arrow, and of opening and planning; the speed of AES GCM streams of
16 and 32 byte keys, read in parts from memory; calls to the KMS; and the memory that batches of a table take which is
larger than a limit, each read in a process of its own. A target is met if no part of the interval is above it, and
otherwise MISSED. Exit code 1: the whole interval of one is above.
"""

from __future__ import annotations

import gc
import io
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, LongType, NestedField, StringType
from suite.stats import Spread, quartiles, ratio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness.encrypted_tables import OwnKms, Writer

from pyspark_iceberg_crypto.kms import CachedKms
from pyspark_iceberg_crypto.reader import _ags1, open_table
from pyspark_iceberg_crypto.reader._expected import ExpectedFile

RATIO = 1.1
"""Of the time of a scan, at most."""
STREAM_GBS = 1.5
"""Of an AES GCM stream on one core, at least."""
MORE_MS = 10.0
"""That opening and planning take longer, at most."""
LIMIT_MB = 400
"""For batches, beyond what the process takes before it opens the table."""
FILES = 8
ROW_BYTES = 17
"""About what a row takes in a file."""
TIMES = 20
"""How often a table is opened and planned in one turn."""
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "price", DoubleType(), required=False),
    NestedField(3, "name", StringType(), required=False),
    NestedField(4, "kind", StringType(), required=False),
)
SCANS: dict[str, Callable[[Table], pa.Table]] = {
    "scan": lambda table: table.scan().to_arrow(),
    "scan of 2 columns, filtered": lambda table: table.scan(
        "price < 0.2", selected_fields=("id", "kind")
    ).to_arrow(),
}
WAYS = {"plaintext": lambda catalog, _: catalog.load_table("db.plaintext")} | {
    "encrypted": lambda catalog, kms: open_table(catalog, "db.encrypted", kms=kms)
}


def main(rounds: int, megabytes: int) -> int:
    missed: list[bool] = []
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        folder = Path(name)
        catalog, kms = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db"), OwnKms()
        catalog.create_namespace("db")
        large = write_tables(catalog, folder, kms, megabytes * 1_000_000 // ROW_BYTES)
        missed += [scans(catalog, kms, rounds), opens(catalog, kms, rounds)]
        missed += [streams(rounds), kms_calls(catalog), batches(large)]
    return 1 if any(missed) else 0


def write_tables(catalog: SqlCatalog, folder: Path, kms: OwnKms, rows: int) -> str:
    """Return the location of a third table, encrypted, whose files are larger, and which is larger than the limit."""
    writers = {
        "plaintext": Writer(folder / "plaintext", SCHEMA, key_id=None),
        "encrypted": Writer(folder / "encrypted", SCHEMA, kms=kms),
    }
    generator = np.random.default_rng(1)
    stored = 0
    for number in range(FILES):
        table = arrow(generator, rows // FILES, number)
        made = {name: writer.parquet(table) for name, writer in writers.items()}
        for name, writer in writers.items():
            writer.commit(made[name])
        stored += made["encrypted"].length
    for name, writer in writers.items():
        catalog.register_table(f"db.{name}", writer.location)
    print(f"{FILES} files, {stored / 1e6:.0f} MB, {table.nbytes * FILES / 1e6:.0f} MB in Arrow")
    large = Writer(folder / "large", SCHEMA, kms=kms)
    whole = pa.concat_tables([table] * (1 + LIMIT_MB * 1_000_000 // table.nbytes))
    return large.commit(*[large.parquet(whole, row_group=1 << 18)] * 3)


def arrow(generator: np.random.Generator, count: int, number: int) -> pa.Table:
    names = generator.integers(0, 1 << 40, count)
    return pa.table(
        {
            "id": pa.array(np.arange(count) + number * count),
            "price": pa.array(generator.random(count)),
            "name": pa.array([f"customer {one:x}" for one in names]),
            "kind": pa.array(generator.integers(0, 7, count)).cast(pa.string()),
        }
    )


Measured = dict[str, list[tuple[float, float]]]


def turns(bodies: dict[str, Callable[[], object]], rounds: int) -> Measured:
    """Return seconds and CPU seconds; a first round warms up."""
    found: Measured = defaultdict(list)
    for number in range(rounds + 1):
        for name in random.sample(list(bodies), len(bodies)):
            gc.collect()
            start, cpu = time.perf_counter(), time.process_time()
            bodies[name]()
            took = time.perf_counter() - start, time.process_time() - cpu
            if number:
                found[name].append(took)
    return found


def scans(catalog: SqlCatalog, kms: OwnKms, rounds: int) -> bool:
    missed = False
    tables = {name: way(catalog, kms) for name, way in WAYS.items()}
    for what, scan in SCANS.items():
        rows = {name: scan(table) for name, table in tables.items()}
        assert rows["plaintext"].equals(rows["encrypted"])
        del rows
        bodies = {name: lambda table=table: scan(table) for name, table in tables.items()}  # noqa: B023
        found = turns(bodies, rounds)
        for number, kind in enumerate(("wall", "CPU")):
            encrypted, plaintext = (
                [one[number] for one in found[name]] for name in ("encrypted", "plaintext")
            )
            spread = ratio(encrypted, plaintext)
            missed |= told(
                f"{what}, {kind}: {quartiles(plaintext).text()} s plaintext, "
                f"{quartiles(encrypted).text()} s encrypted, ratio {spread.text(2)}",
                spread,
                RATIO,
                rounds,
            )
    return missed


def opens(catalog: SqlCatalog, kms: OwnKms, rounds: int) -> bool:
    """Each turn opens and plans several times, as a session does that has the table's KEK."""
    cached = CachedKms(kms)

    def body(name: str) -> None:
        for _ in range(TIMES):
            list(WAYS[name](catalog, cached).scan().plan_files())

    found = turns({name: lambda name=name: body(name) for name in WAYS}, rounds)
    missed = False
    for number, kind in enumerate(("wall", "CPU")):
        took = {
            name: [1000 * one[number] / TIMES for one in values] for name, values in found.items()
        }
        pairs = zip(took["encrypted"], took["plaintext"], strict=True)
        more = ratio([encrypted - plaintext for encrypted, plaintext in pairs], [1.0] * rounds)
        missed |= told(
            f"open and plan, {kind}: {quartiles(took['plaintext']).text(1)} ms plaintext, "
            f"{quartiles(took['encrypted']).text(1)} ms encrypted, {more.text(1)} ms more",
            more,
            MORE_MS,
            rounds,
        )
    return missed


def streams(rounds: int) -> bool:
    """Of CPU time; a buffer is used again and again, as for an Avro file."""
    missed, plaintext, buffer = False, os.urandom(64 << 20), bytearray(1 << 20)
    for length in (16, 32):
        stored, key = _ags1.encrypt(plaintext, length)
        file = ExpectedFile("benchmark", "memory", len(stored))

        def read(stored: bytes = stored, key=key, file: ExpectedFile = file) -> None:  # type: ignore[no-untyped-def]
            stream = _ags1.DecryptedStream(io.BytesIO(stored), key, file)
            while stream.readinto(buffer):
                pass

        found = turns({"": read}, max(rounds, 9))[""]
        speeds = [len(plaintext) / cpu / 1e9 for _, cpu in found]
        slowness = ratio([1.0] * len(speeds), speeds)
        missed |= told(
            f"AES GCM stream, {8 * length} bits: {quartiles(speeds).text(2)} GB/s",
            slowness,
            1 / STREAM_GBS,
            len(speeds),
            f"at least {STREAM_GBS} GB/s",
        )
    return missed


def kms_calls(catalog: SqlCatalog) -> bool:
    kms = OwnKms()
    cached = CachedKms(kms, ttl_ms=3_000)

    def use() -> None:
        for _ in range(2):
            table = open_table(catalog, "db.encrypted", kms=cached)
            list(table.scan().plan_files())
            table.scan("id < 1000").to_arrow()
            table.refresh().scan("id < 1000").to_arrow()

    use()
    once = len(kms.asked)
    time.sleep(3.1)
    use()
    calls = once, len(kms.asked) - once
    missed = calls != (1, 1)
    print(
        f"KMS calls for one KEK: opened twice, 4 scans: {calls[0]}; the same after the TTL: {calls[1]}; "
        f"target 1 each: {'MISSED' if missed else 'met'}"
    )
    return missed


def batches(location: str) -> bool:
    command = [sys.executable, __file__, "--batches", location]
    decoded, more = map(float, subprocess.check_output(command, text=True).split())
    missed = more > LIMIT_MB
    assert decoded > 2 * LIMIT_MB
    print(
        f"batches of {decoded:.0f} MB: {more:.0f} MB at most, target {LIMIT_MB} MB: {'MISSED' if missed else 'met'}"
    )
    return missed


def read_batches(location: str) -> None:
    """In a process of its own: print the megabytes that were read, and those that this took at most at a time."""
    before = memory("VmRSS")
    table = open_table(location, kms=OwnKms())
    decoded = sum(batch.nbytes for batch in table.scan().to_arrow_batch_reader())
    print(decoded / 1e6, memory("VmHWM") - before)


def memory(name: str) -> float:
    """Return a value of this process, in megabytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e6


def told(text: str, value: Spread, most: float, rounds: int, target: str = "") -> bool:
    """Print a verdict; whether a target was missed beyond doubt."""
    verdict = "met" if value.high <= most else "MISSED"
    print(f"{text}; target {target or f'{most:g}'}: {verdict}", flush=True)
    return rounds >= 5 and value.low > most


def arguments(given: Sequence[str]) -> tuple[int, int]:
    rounds, megabytes = [*map(int, given), *(11, 64)[len(given) :]]
    return rounds, megabytes


if __name__ == "__main__":
    if sys.argv[1:2] == ["--batches"]:
        read_batches(sys.argv[2])
    else:
        sys.exit(main(*arguments(sys.argv[1:])))
