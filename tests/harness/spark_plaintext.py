"""Looks for a text of an encrypted table in what Spark itself writes to disks and sends between its processes."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

SPILLS = {"spark.shuffle.spill.numElementsForceSpillThreshold": "5000"}
"""Setting with which sorting the rows below spills."""
ROWS = 40_000  # of 300 bytes: more than Python's socket takes, so that files are there while Python looks


def on_local_disks(
    spark: SparkSession, table: str, text: str, folder: str
) -> dict[str, tuple[int, int]]:
    """Shuffle, spill and cache rows: of each kind of file below `folder`, how many there are and have the text."""

    def spilled(rows: Iterator[Any]) -> Iterator[tuple[int, int]]:
        """In Python's worker, which has nothing of this module."""
        next(rows)  # all are sorted
        found = [path.read_bytes() for path in Path(folder).rglob("temp_local_*")]
        yield sum(map(bool, found)), sum(text.encode() in content for content in found)
        for _ in rows:
            pass

    spark.sql(
        f"INSERT INTO {table} SELECT id, '{text}' || repeat('.', 280), 'p' FROM range(0, {ROWS}, 1, 1)"
    )
    spark.sql(f"SELECT note, count(*) FROM {table} GROUP BY note").collect()
    (seen,) = spark.table(table).sortWithinPartitions("id").rdd.mapPartitions(spilled).collect()
    spark.sql(f"CACHE TABLE cached OPTIONS ('storageLevel' 'DISK_ONLY') SELECT * FROM {table}")
    return {
        "shuffled": having(Path(folder), "shuffle_*.data", text),
        "spilled": seen,
        "cached": having(Path(folder), "rdd_*", text),
    }


def in_checkpoint(spark: SparkSession, table: str, text: str, folder: str) -> tuple[int, int]:
    """Count a table's rows by a stream: how many files of its state there are and have the text."""
    counted = spark.readStream.table(table).groupBy("note").count().writeStream
    stream = counted.format("memory").queryName("counted").outputMode("complete")
    query = stream.option("checkpointLocation", folder).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return having(Path(folder), "*.delta", text)


def having(folder: Path, pattern: str, text: str) -> tuple[int, int]:
    """How many files there are below a folder, and how many have a text in them."""
    found = [path.read_bytes() for path in folder.rglob(pattern) if path.is_file()]
    return sum(map(bool, found)), sum(text.encode() in content for content in found)


class Loopback:
    """What goes over the loopback interface, of which packets are counted that have one of some byte strings."""

    def __init__(self) -> None:
        self.packets = 0
        self.found: dict[bytes, int] = {}
        self._ended = threading.Event()

    @contextmanager
    def listening(self, *wanted: bytes) -> Iterator["Loopback"]:
        """Listens as long as the block runs."""
        self.found = dict.fromkeys(wanted, 0)
        if os.geteuid() != 0:
            pytest.skip("needs root, to listen to the loopback interface")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
            raw.bind(("lo", 0))
            raw.settimeout(0.2)
            thread = threading.Thread(target=self._listen, args=[raw])
            thread.start()
            try:
                yield self
            finally:
                self._ended.set()
                thread.join()

    def _listen(self, raw: socket.socket) -> None:
        while not self._ended.is_set():
            try:
                packet = raw.recv(1 << 17)
            except TimeoutError:
                continue
            self.packets += 1
            for one in self.found:
                self.found[one] += one in packet
