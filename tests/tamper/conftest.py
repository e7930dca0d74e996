"""What all tests of tampering need of the session."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="module", autouse=True)
def quiet(spark: SparkSession) -> Iterator[None]:
    """Hundreds of stack traces are expected; and delete files are read again every time."""
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("spark.sql.iceberg.executor-cache.enabled", "false")
    yield
    spark.conf.unset("spark.sql.iceberg.executor-cache.enabled")
    spark.sparkContext.setLogLevel("ERROR")
