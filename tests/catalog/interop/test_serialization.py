"""Tables as they travel to executors, by each of Spark's serializers."""

from typing import Any

import pytest
from harness.lake import Lake
from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "serializer", ["JavaSerializer", pytest.param("KryoSerializer", marks=pytest.mark.nightly)]
)
def test_a_table_that_arrives_reads(lake: Lake, spark: SparkSession, serializer: str) -> None:
    table = lake.insert(lake.create(), [1, 2])
    lake.sql(f"DELETE FROM {table} WHERE id = 2")
    jvm = spark._jvm
    assert jvm is not None
    loaded = lake.java(table, refresh=False)
    sent = jvm.org.apache.iceberg.SerializableTable.copyOf(loaded)
    conf = spark.sparkContext._jsc.sc().conf()
    made = getattr(jvm.org.apache.spark.serializer, serializer)(conf)
    made.setDefaultClassLoader(loaded.getClass().getClassLoader())
    arrived, sent_bytes = round_trip(jvm, made.newInstance(), sent)
    # the table has it, and its FileIO
    assert sent_bytes.count(b"io.TableEncryptionManager$Serialized") == 1
    with_rows = jvm.org.apache.iceberg.data.IcebergGenerics.read(arrived).build().iterator()
    assert [row.getField("id") for row in iter_java(with_rows)] == [1]


def round_trip(jvm: Any, serializer: Any, value: Any) -> tuple[Any, bytes]:
    """What arrives, and the bytes that travelled."""
    tag = jvm.scala.reflect.ClassTag.apply(value.getClass())
    travelling = serializer.serialize(value, tag)
    return serializer.deserialize(travelling.duplicate(), tag), bytes(travelling.array())


def iter_java(iterator: Any) -> Any:
    while iterator.hasNext():
        yield iterator.next()
    iterator.close()
