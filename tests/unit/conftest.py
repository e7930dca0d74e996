"""No test in this folder starts a JVM for Spark."""

from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def no_jvm() -> Iterator[None]:
    """A process as it is before Spark starts, whatever other tests have left running in this one."""
    with pytest.MonkeyPatch.context() as patch:  # its own: a test may undo the one that it gets
        patch.setattr(SparkContext, "_gateway", None)
        patch.setattr(SparkContext, "_jvm", None)
        patch.setattr(SparkContext, "_active_spark_context", None)
        patch.setattr(SparkSession, "_instantiatedSession", None)
        for name in (
            "PYSPARK_SUBMIT_ARGS",
            "PYSPARK_GATEWAY_PORT",
            "SPARK_REMOTE",
            "SPARK_CONF_DIR",
        ):
            patch.delenv(name, raising=False)
        yield
        assert SparkContext._gateway is None, "a unit test has started a JVM"
