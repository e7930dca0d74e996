"""Fixtures: one Spark session for the whole run, with every catalog in it, ours and stock Iceberg's."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `servers`, whatever import mode pytest runs in
if java_home := os.environ.get(
    "JAVA_HOME"
):  # Spark's choice is then that of whoever looks for `java` on the PATH
    os.environ["PATH"] = os.pathsep.join([f"{java_home}/bin", os.environ["PATH"]])

from pyspark.sql import SparkSession
from servers.lake import Lake
from servers.world import KINDS, World, make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Keystore, warehouses and the REST server."""
    made = make_world(tmp_path_factory.mktemp("world"))
    yield made
    made.rest.stop()


@pytest.fixture(scope="session")
def spark(world: World) -> Iterator[SparkSession]:
    """The one Spark session; it holds enc_KIND and stock_KIND catalogs, and ours as spark_catalog."""
    builder = SparkSession.builder.appName("iceberg-crypto tests")
    for key, value in world.session_conf().items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, spark: SparkSession, world: World) -> Lake:
    """Our catalog over each of the four."""
    return Lake(spark, world, request.param, f"enc_{request.param}")


@pytest.fixture
def hive(spark: SparkSession, world: World) -> Lake:
    return Lake(spark, world, "hive", "enc_hive")


@pytest.fixture
def hadoop(spark: SparkSession, world: World) -> Lake:
    return Lake(spark, world, "hadoop", "enc_hadoop")
