"""Random histories of writes with keys for columns: a few by day; new ones by night, with all that Spark writes."""

import base64
import gzip
import os
import time
import uuid
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from harness.keystore import TestKeystore
from harness.sessions import OtherSession
from harness.world import World
from hypothesis import Phase, given, seed
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from pyspark.sql import SparkSession

from twin.keyed.columns import TYPES, Marked
from twin.keyed.machine import FORMATS, WRITERS, Counts, KeyedHistory, LeakError
from twin.keyed.search import Search, opened
from twin.keyed.writers import Writer
from twin.operations.base import Draw
from twin.searching import settings_of

SEED = int(os.environ.get("ICEBERG_CRYPTO_SEED", "1"))  # another each night
FIXED = int(os.environ.get("ICEBERG_CRYPTO_TWIN_SEED", "1"))
MINUTES = float(os.environ.get("ICEBERG_CRYPTO_KEYED_MINUTES", "3"))
STEPS = 4


def machine(
    spark: SparkSession, keystore: TestKeystore, folder: Path, search: Search, **more: Any
) -> type[KeyedHistory]:
    attributes = {
        "spark": spark,
        "store": keystore.kms(),
        "folder": folder / "written",
        "source": folder / "plaintext",
        "search": search,
        "counts": Counts(),
        **more,
    }
    return type("Keyed", (KeyedHistory,), attributes)


def run(histories: type[KeyedHistory], number: int, drawn: int, *phases: Phase) -> None:
    run_state_machine_as_test(
        seed(drawn)(histories),
        settings=settings_of(number, STEPS, *phases),
    )


def run_once(histories: type[KeyedHistory], fmt: str, one: Writer, drawn: int) -> None:
    """One writer, with what is simplest, and with what is drawn."""

    @seed(drawn)
    @settings_of(2, STEPS)
    @given(st.data())
    def write(data: Any) -> None:
        history, draw = histories(), Draw(data)
        history.start(draw, fmt)
        history.write(draw, one)

    write()


def told(histories: type[KeyedHistory]) -> str:
    search = histories.search
    return (
        f"{histories.counts}\nsearched: {search.files} files, {search.searched:,} bytes;"
        f" with values, as documented: {search.told or 'none'}"
    )


@pytest.mark.nightly
def test_every_writer(
    spark: SparkSession,
    world: World,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """What persists, with a fixed seed; Spark's local folders are as Spark's default has them."""
    search = Search(
        [tmp_path / "written", world.root / "metastore", world.root / "spark-warehouse"]
    )
    histories = machine(spark, world.keystore, tmp_path, search)
    try:
        for number, (fmt, one) in enumerate(product(FORMATS, WRITERS)):
            run_once(histories, fmt, one, FIXED + number)
        assert not histories.counts.never
    finally:
        record_property("counts", f"keyed columns, seed {FIXED}: {told(histories)}")


@pytest.mark.parametrize("kind", TYPES)
def test_the_search_finds_values(kind: str, tmp_path: Path) -> None:
    column = Marked("c", kind, "k2", True, f"Q{uuid.uuid4().hex[:20]}")
    table = pa.table([pa.array(map(column.value, range(50)), TYPES[kind])], ["c"])
    for compression in ("none", "snappy", "gzip", "zstd", "lz4"):
        for dictionary in (True, False):
            file = tmp_path / f"{compression}-{dictionary}"
            pq.write_table(table, file, compression=compression, use_dictionary=dictionary)
    pyarrow.orc.write_table(table, tmp_path / "orc", compression="zlib")
    assert len(Search([tmp_path]).find(column.needles())) == 11


def test_the_search_finds_statistics_and_blocks(tmp_path: Path) -> None:
    column = Marked("c", "text", "k2", True, f"Q{uuid.uuid4().hex[:20]}")
    value = f"before {column.value(1)} after".encode()
    for lead in range(3):
        (tmp_path / f"{lead}.json").write_bytes(base64.b64encode(b"." * lead + value))
    assert len(Search([tmp_path]).find(column.needles())) == 3
    packed = bytes(pa.Codec("lz4_raw").compress(value * 9))
    sizes = len(packed).to_bytes(4, "little") + (9 * len(value)).to_bytes(4, "little")
    blocks = [
        b"LZ4Block\x25" + sizes + bytes(4) + packed,
        gzip.compress(value),
        bytes(pa.Codec("zstd").compress(value)),
    ]
    for block in blocks:
        assert any(value in found for found in opened(b"before" + block))


def test_a_write_without_keys_is_found(spark: SparkSession, world: World, tmp_path: Path) -> None:
    """The guard is off, and the keys are dropped."""
    histories = machine(
        spark, world.keystore, tmp_path, Search([tmp_path / "written"]), sabotaged=True
    )
    with pytest.raises(LeakError, match="values of columns with keys are in"):
        run(histories, 2, FIXED, Phase.generate)


def by_night(
    spark: SparkSession, keystore: TestKeystore, folder: str, minutes: float, drawn: int
) -> str:
    """All that Spark writes is below one folder, its local disks encrypted."""
    root, until = Path(folder), time.monotonic() + 60 * minutes
    spark.sparkContext.setCheckpointDir(f"{folder}/written/checkpoints")
    search = Search([root / "written"], aside=("written/checkpoints",))
    histories = machine(spark, keystore, root, search)
    while time.monotonic() < until:
        drawn += 1
        run(histories, 10, drawn)
    return f"keyed columns, seeds to {drawn}: {told(histories)}"


@pytest.mark.nightly
def test_new_histories(
    world: World, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    written = tmp_path / "written"
    (written / "events").mkdir(parents=True)
    conf = world.session_conf(written / "metastore")
    log = tmp_path / "log4j2.properties"
    log.write_text(LOG.format(file=written / "spark.log"))
    conf |= {
        "spark.sql.catalogImplementation": "hive",
        "spark.local.dir": str(written / "local"),
        "spark.io.encryption.enabled": "true",
        "spark.sql.warehouse.dir": str(written / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{written}/events",
    }
    conf["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile={log}"
    with OtherSession(conf, seconds=60 * MINUTES + 900) as session:
        counts = session.do(by_night, world.keystore, str(tmp_path), MINUTES, SEED)
    record_property("counts", counts)
    assert "written/checkpoints" in counts, "docs/deploying.md says that rows are there"


LOG = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c %m%n%ex
"""
