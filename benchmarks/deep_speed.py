"""How fast deep verification is on one core, beside `openssl speed` on the same machine in the same run.

    python benchmarks/deep_speed.py [MEGABYTES [ROUNDS]]

Spark writes an encrypted table of about so many megabytes in Parquet with Iceberg's defaults, and one in Avro (an AES
GCM stream). Each round measures AES-128-GCM in OpenSSL and the check of the tables' files, by one thread, in turns:
from memory (the check by itself) and from the local file system's page cache. Prints medians and quartiles in MB/s of
stored bytes per second of CPU time (as OpenSSL does; of the whole JVM), and whether the check from memory has 60 % of
OpenSSL's speed. Exit code 1: it has not. Needs Linux, whose /proc tells CPU time.
"""

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _spark import cpu_seconds, java_table, new_keystore, start_spark
from pyspark.sql import SparkSession

TARGET = 0.6
ROW_BYTES = {"parquet": 45, "avro": 64}
"""About what a row takes."""
BESIDE = {"parquet": 16 << 10, "avro": 1 << 20}
"""The blocks of OpenSSL to compare with: those of AES GCM streams are as long, Parquet's pages longer."""


def main(megabytes: int, rounds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        folder = Path(name)
        spark = start_spark(folder, new_keystore(folder), spark_driver_memory="2g")
        try:
            checks: dict[str, Callable[[], float]] = {}
            for kind in ROW_BYTES:
                checks |= checking(spark, kind, megabytes)
            speeds = measure(checks, rounds)
        finally:
            spark.stop()
    return report(speeds)


def checking(spark: SparkSession, kind: str, megabytes: int) -> dict[str, Callable[[], float]]:
    """Writes a table; returns functions that check its files, each from another place, and return MB/s."""
    spark.sql(
        f"CREATE TABLE lake.db.{kind} (id BIGINT, part INT, price DOUBLE, name STRING) USING iceberg TBLPROPERTIES"
        f" ('encryption.key-id'='k1', 'write.format.default'='{kind}', 'write.avro.compression-codec'='uncompressed')"
    )
    rows = megabytes * 1_000_000 // ROW_BYTES[kind]
    values = "id, CAST(id % 1000 AS INT), rand(), uuid()"
    spark.sql(f"INSERT INTO lake.db.{kind} SELECT {values} FROM range(0, {rows}, 1, 1)")
    java: Any = spark._jvm
    table = java_table(spark, f"lake.db.{kind}")
    files = list(table.currentSnapshot().addedDataFiles(table.io()))
    print(
        f"{kind}: {len(files)} files, {sum(file.fileSizeInBytes() for file in files) / 1e6:.0f} MB"
    )
    stored = {file.location().removeprefix("file:"): file for file in files}
    # without Hadoop's checksums, which cost as much as decryption
    local = {path: java.org.apache.iceberg.Files.localInput(path) for path in stored}
    memory = {path: in_memory(java, path) for path in stored}
    return {
        f"{kind} from {place}": lambda inputs=inputs: check(spark, kind, stored, inputs)
        for place, inputs in {"memory": memory, "file": local}.items()
    }


def in_memory(java: Any, path: str) -> Any:
    content = java.java.nio.file.Files.readAllBytes(java.java.io.File(path).toPath())
    return java.org.apache.iceberg.inmemory.InMemoryInputFile(path, content)


def check(spark: SparkSession, kind: str, stored: dict[str, Any], inputs: dict[str, Any]) -> float:
    java: Any = spark._jvm
    ours = java.io.icebergcrypto
    checks = ours.spark.verify.FileCheck(ours.spark.verify.Depth.DEEP)
    size = 0
    start = cpu_seconds(java)
    while (taken := cpu_seconds(java) - start) < 0.5:
        for path, file in stored.items():
            length = file.fileSizeInBytes()
            checked = checks.check(
                ours.audit.FileKind.DATA, kind, inputs[path], length, file.keyMetadata()
            )
            assert checked.problem() is None, checked.problem()
            assert checked.bytesRead() == length
            size += length
    return size / taken / 1e6


def measure(checks: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    for run in checks.values():  # to warm up: the JVM compiles what it runs often
        for _ in range(3):
            run()
    speeds: dict[str, list[float]] = {}
    for _ in range(rounds):
        for block in BESIDE.values():
            speeds.setdefault(f"openssl {block}", []).append(openssl(block))
        for name, run in checks.items():
            speeds.setdefault(name, []).append(run())
    return speeds


def openssl(block: int) -> float:
    """MB/s of AES-128-GCM on one core."""
    command = [
        "openssl",
        "speed",
        "-mr",
        "-seconds",
        "1",
        "-bytes",
        str(block),
        "-evp",
        "aes-128-gcm",
    ]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"^\+F:\d+:[^:]*:([\d.]+)", answer, re.MULTILINE)
    assert found, answer
    return float(found[1]) / 1e6


def report(speeds: dict[str, list[float]]) -> int:
    for name, taken in speeds.items():
        low, median, high = statistics.quantiles(taken, n=4)
        print(f"{name:20} {median:6.0f} MB/s  ({low:.0f} to {high:.0f})")
    missed = 0
    for kind, block in BESIDE.items():
        for place in ("memory", "file"):
            share = statistics.median(speeds[f"{kind} from {place}"]) / statistics.median(
                speeds[f"openssl {block}"]
            )
            missed += place == "memory" and share < TARGET
            verdict = "missed" if share < TARGET else "met"
            print(
                f"{kind} from {place}: {100 * share:.0f} % of OpenSSL, target {100 * TARGET:.0f} %: {verdict}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(given + [400, 9][len(given) :])))
