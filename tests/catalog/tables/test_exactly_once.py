"""Streams whose table is encrypted, decrypted or reencrypted in place: what a sink committed is not written again.

And one between encrypted tables, which replaces its results.
"""

from pathlib import Path

import pytest
from harness.files import MARKER, change, marker_in
from harness.lake import Lake
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from pyspark_iceberg_crypto import (
    decrypt_table,
    encrypt_table,
    purge_plaintext,
    reencrypt_table,
)

pytestmark = pytest.mark.slow


def write_new(lake: Lake, source: str, target: str, checkpoint: Path, **options: str) -> None:
    """Has a streaming query append what is new in the source."""
    query = (
        lake.spark.readStream.options(**options)
        .table(source)
        .writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .toTable(target)
    )
    wait_for_end(query)


def wait_for_end(query: StreamingQuery) -> None:
    try:
        assert query.awaitTermination(120), "the stream did not end"
    finally:
        query.stop()


def forget_last_commit(checkpoint: Path) -> None:
    """As a query leaves its checkpoint that is killed between the table's commit and its own."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    change(last, None)


@pytest.mark.nightly
def test_spark_sinks(hadoop: Lake, tmp_path: Path) -> None:
    """Two queries, each of which has committed an epoch that it does not know of."""
    source = hadoop.create("source", key=None)
    target = hadoop.create("target", key=None, format__version="2")
    checkpoints = [tmp_path / "one", tmp_path / "two"]
    for new in (1, 2):
        hadoop.sql(f"INSERT INTO {source} VALUES ({new}, '{MARKER}', 'p')")
        for checkpoint in checkpoints:
            write_new(hadoop, source, target, checkpoint)
    assert hadoop.ids(target) == [1, 1, 2, 2]

    def again_after() -> None:
        for checkpoint in checkpoints:
            forget_last_commit(checkpoint)
            write_new(hadoop, source, target, checkpoint)

    encrypt_table(hadoop.spark, target, "k1")
    again_after()
    assert hadoop.ids(target) == [1, 1, 2, 2]
    purge_plaintext(hadoop.spark, target)
    hadoop.sql(f"INSERT INTO {source} VALUES (3, '{MARKER}', 'p')")
    for checkpoint in checkpoints:
        write_new(hadoop, source, target, checkpoint)
    assert hadoop.ids(target) == [1, 1, 2, 2, 3, 3]
    hadoop.sql(reencrypt_table(hadoop.spark, target).expire_statement or "")
    assert (
        hadoop.value(f"SELECT count(*) FROM {target}.snapshots") == 2
    )  # as many as there are queries
    again_after()
    assert hadoop.ids(target) == [1, 1, 2, 2, 3, 3]
    decrypt_table(hadoop.spark, target, confirm=True)
    again_after()
    assert hadoop.ids(target) == [1, 1, 2, 2, 3, 3]
    assert not marker_in(tmp_path), "the checkpoints"


@pytest.mark.nightly
def test_spark_readers(hadoop: Lake, tmp_path: Path) -> None:
    """They end, having lost nothing, and begin again as docs/encrypting-tables.md says."""
    source = hadoop.create("source", key=None)
    target = hadoop.create("target", key=None)
    hadoop.sql(f"INSERT INTO {source} VALUES (1, '{MARKER}', 'p')")
    write_new(hadoop, source, target, tmp_path / "before")
    name = f"{hadoop.namespace}.source"
    call = f"CALL {hadoop.catalog}.system.encrypt_table(table => '{name}', key_id => 'k1'"
    [planned] = hadoop.sql(f"{call}, dry_run => true)")
    assert "Streams that read the table will need new checkpoints" in planned.message
    hadoop.sql(f"{call})")
    start = hadoop.value(f"SELECT unix_millis(max(committed_at)) + 1 FROM {source}.snapshots")
    hadoop.sql(f"INSERT INTO {source} VALUES (2, '{MARKER}', 'p')")
    with pytest.raises(StreamingQueryException, match="snapshot"):
        write_new(hadoop, source, target, tmp_path / "before")
    assert hadoop.ids(target) == [1]
    for new in (2, 3):
        write_new(
            hadoop, source, target, tmp_path / "after", **{"stream-from-timestamp": str(start)}
        )
        assert hadoop.ids(target)[-1] == new
        hadoop.sql(f"INSERT INTO {source} VALUES ({new + 1}, '{MARKER}', 'p')")
    assert hadoop.ids(target) == [1, 2, 3]
    assert not marker_in(tmp_path), "the checkpoints"


@pytest.mark.nightly
def test_stream_of_complete_results(hadoop: Lake, tmp_path: Path) -> None:
    source = hadoop.create("source")
    target = hadoop.create("target", columns="part STRING, n BIGINT")
    hadoop.insert(source, [1, 2], part="a")
    hadoop.insert(source, [3], part="b")
    query = (
        hadoop.spark.readStream.table(source)
        .groupBy("part")
        .count()
        .withColumnRenamed("count", "n")
        .writeStream.outputMode("complete")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .toTable(target)
    )
    wait_for_end(query)
    hadoop.assert_encrypted("the stream")
    assert hadoop.rows(f"SELECT part, n FROM {target}") == [("a", 2), ("b", 1)]
