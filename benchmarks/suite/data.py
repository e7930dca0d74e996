"""What is written and read: TPC-H's tables, the flights, and a wide table."""

import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_iceberg_crypto.demo import flights

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
WIDE_COLUMNS = 200
WRITTEN_ROWS = {False: 150_000, True: 1_000_000}
"""At most so many are in memory to be written, in quick and in full mode."""


class Data:
    """Rows by name; the same in each run of the same scale."""

    def __init__(self, spark: SparkSession, folder: Path, scale: float) -> None:
        self._spark, self._folder, self.scale = spark, folder, scale

    @cached_property
    def _tpch(self) -> Path:
        """Made by tpchgen-cli, from PyPI: the same rows as TPC-H's dbgen."""
        folder = self._folder / "tpch"
        program = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run(
            [program, "parquet", "--quiet", "-s", str(self.scale), f"--output-dir={folder}"],
            check=True,
        )
        return folder

    @cached_property
    def _flights(self) -> Path:
        return flights.unpack(self._folder)

    def rows(self, name: str) -> DataFrame:
        """Of one of TPC-H's tables, flights, narrow (two columns), wide (200), or few (10,000 rows)."""
        if name == "flights":
            return flights.read(self._spark, self._flights)
        if name == "wide":
            count = int(500_000 * self.scale) or 1
            return self._spark.range(0, count, 1, 2).select(
                "id", *[f.rand(i).alias(f"c{i}") for i in range(1, WIDE_COLUMNS)]
            )
        if name == "narrow":
            return self.rows("lineitem").select("l_orderkey", "l_comment")
        if name == "few":
            return self.rows("lineitem").limit(10_000)
        return self._spark.read.parquet(str(self._tpch / f"{name}.parquet"))


def queries(scale: float) -> dict[str, str]:
    """TPC-H's 22 queries by name, Q1 to Q22."""
    text = Path(__file__).with_name("tpch_queries.sql").read_text()
    _, *parts = re.split(r"^-- (Q\d+)$", text, flags=re.MULTILINE)
    found = dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    found["Q11"] = found["Q11"].format(fraction=f"{0.0001 / scale:.10f}")
    return found
