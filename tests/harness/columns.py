"""What the tests of keys for columns share: rows, sessions, and programs that write tables of other formats."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from harness.steps import given, seen, tell
from pyspark_iceberg_crypto import Keystore, Kms, ParquetKeys, configure_spark, typed_errors

MARKER = "sesame-4711"


def rows(spark: SparkSession, count: int = 20) -> DataFrame:
    return spark.range(count).select(
        fn.lit(MARKER).alias("ssn"),
        "id",
        fn.struct(fn.lit(MARKER).alias("street"), fn.lit("Ulm").alias("city")).alias("address"),
        fn.array(fn.lit(MARKER)).alias("tags"),
    )


def keyed_session(spark: SparkSession, kms: Kms, folder: Path, **options: Any) -> SparkSession:
    """A session of its own, with a catalog of its own."""
    return configure_spark(
        spark.newSession(),
        f"keyed_{uuid.uuid4().hex}",
        "hadoop",
        warehouse=str(folder),
        kms=kms,
        path_access=False,
        **options,
    )


class Work:
    """A program's steps, in a session whose Parquet files have keys: the footer's, and one of the column ssn."""

    form: str

    def __init__(self) -> None:
        self.settings, builder = given()
        self.folder = Path(self.settings["folder"])
        configure_spark(
            builder,
            "lake",
            "hadoop",
            warehouse=f"{self.folder}/warehouse",
            kms=Keystore(self.folder / "keys.p12", password_env="KEYSTORE_PASSWORD"),
            parquet_columns=ParquetKeys(footer="footer", columns={"ssn": "pii"}),
        )
        if self.settings.get("unchecked"):
            builder.config("spark.sql.extensions", self.settings["conf"]["spark.sql.extensions"])
        self.spark = builder.getOrCreate()

    def tell(self, steps: list[Callable[[], Any]]) -> None:
        """To the test that started it, each step apart."""
        found = seen(steps)
        self.spark.stop()
        tell(found)

    @contextmanager
    def set(self, **conf: str) -> Iterator[None]:
        """Settings of the session."""
        for name, value in conf.items():
            self.spark.conf.set(name, value)
        try:
            yield
        finally:
            for name in conf:
                self.spark.conf.unset(name)

    def told(self, work: Callable[[], Any]) -> str:
        try:
            with typed_errors():
                work()
        except Exception as error:  # noqa: BLE001 (a stream has its own)
            return f"{type(error).__name__}: {error}"
        return "not refused"

    def streamed(self, name: str, rows: DataFrame, **options: str) -> None:
        source = self.folder / "source"
        if not source.exists():
            rows.write.parquet(str(source))
        query = (
            self.spark.readStream.schema(rows.schema)
            .parquet(str(source))
            .writeStream.format(self.form)
            .options(checkpointLocation=f"{self.folder}/{name}-checkpoint", **options)
            .trigger(availableNow=True)
            .start(f"{self.folder}/{name}")
        )
        query.awaitTermination()
