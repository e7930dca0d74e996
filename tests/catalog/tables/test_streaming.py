"""Structured streaming from and to encrypted tables."""

from pathlib import Path

import pytest
from harness.files import marker_in
from harness.lake import Lake

pytestmark = [pytest.mark.nightly, pytest.mark.catalogs("hadoop")]


def run_stream(lake: Lake, source: str, target: str, checkpoint: Path) -> None:
    """Moves what is new in the source to the target."""
    query = (
        lake.spark.readStream.option("streaming-max-files-per-micro-batch", "1")
        .table(source)
        .where("id <> 2")
        .writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .toTable(target)
    )
    try:
        assert query.awaitTermination(120), "the stream did not end"
    finally:
        query.stop()
    lake.assert_encrypted("the stream")


def test_stream_from_table_to_table(lake: Lake, tmp_path: Path) -> None:
    source, target = lake.create("source"), lake.create("target", key="k2", partition="part")
    lake.insert(source, [1])
    lake.insert(source, [2, 3])
    run_stream(lake, source, target, tmp_path)
    assert lake.ids(target) == [1, 3]
    lake.insert(source, [4])
    run_stream(lake, source, target, tmp_path)
    assert lake.ids(target) == [1, 3, 4]
    assert not marker_in(tmp_path)


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
    try:
        assert query.awaitTermination(120), "the stream did not end"
    finally:
        query.stop()
    hadoop.assert_encrypted("the stream")
    assert hadoop.rows(f"SELECT part, n FROM {target}") == [("a", 2), ("b", 1)]
