"""Which keys, and where a session has them from."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import Keystore, OrcKeys, ParquetKeys, configure_spark
from twin.keyed.columns import Marked
from twin.operations.base import Draw

SOURCES = ("session", "options", "Hadoop", "capitals in options", "capitals in session")
_OURS = ("parquet.", "orc.", "iceberg-crypto.")


@dataclass(frozen=True)
class Keys:
    """The keys of a history; `told` is what the counts say of them."""

    parquet: ParquetKeys | None
    orc: OrcKeys | None
    source: str
    told: tuple[str, ...]

    @property
    def options(self) -> dict[str, str]:
        return (self.parquet or self.orc or ParquetKeys()).options()


def draw_parquet(draw: Draw) -> dict[str, Any]:
    uniform = draw.pick((False, False, False, True))
    return {
        "uniform": "k1" if uniform else None,
        "complete": draw.pick((True, True, False)),
        "plaintext_footer": draw.flag(),
        "algorithm": draw.pick(("AES_GCM_V1", "AES_GCM_CTR_V1")),
        "double_wrapping": draw.flag(),
        "key_material_beside": draw.flag(),
        "data_key_length": draw.pick((128, 256)),
    }


def parquet_keys(drawn: dict[str, Any], columns: tuple[Marked, ...]) -> ParquetKeys:
    if drawn["uniform"]:
        return ParquetKeys(**{**drawn, "complete": True})
    named = {column.name: column.key or "" for column in columns if column.named}
    return ParquetKeys(footer="k1", columns=named, **{**drawn, "uniform": None})


def configured(
    spark: SparkSession, store: Keystore, folder: Path, keys: Keys, *allowed: str
) -> SparkSession:
    """A session with these keys; `allowed` are the only ones that it may use."""
    return configure_spark(
        spark.newSession(),
        f"keyed_{uuid.uuid4().hex}",
        "hadoop",
        warehouse=str(folder / "lake"),
        kms=store,
        path_access=False,
        allowed_key_ids=allowed or None,
        parquet_columns=keys.parquet,
        orc_columns=keys.orc,
    )


@contextmanager
def writer(
    spark: SparkSession, store: Keystore, folder: Path, keys: Keys
) -> Iterator[tuple[SparkSession, dict[str, str]]]:
    """The session that writes, and the options of its writes."""
    if keys.source == "session":
        yield configured(spark, store, folder, keys), {}
        return

    if keys.source == "Hadoop":
        probe = configured(spark, store, folder, keys)
        wanted = {n: v for n, v in probe.conf.getAll.items() if n.startswith(_OURS)}
        hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
        for name, value in wanted.items():
            hadoop.set(name, value)
        try:
            yield spark.newSession(), {}
        finally:
            for name in wanted:
                hadoop.unset(name)
        return

    none = Keys(keys.parquet and ParquetKeys(), keys.orc and OrcKeys(missing_keys="fail"), "", ())
    session = configured(spark, store, folder, none)
    if keys.source == "options":
        yield session, keys.options
    elif keys.source == "capitals in options":
        yield session, {capital(name): value for name, value in keys.options.items()}
    else:  # and the guard is off
        allowed = "orc" if keys.orc else "parquet"
        for name in none.options:
            if name.partition(".")[0] != "iceberg-crypto" and "factory" not in name:
                session.conf.unset(name)
        session.conf.set(f"iceberg-crypto.{allowed}.plaintext-writes", "allow")
        for name, value in keys.options.items():
            if "plaintext-writes" not in name and "factory" not in name:
                session.conf.set(capital(name), value)
        yield session, {}


def capital(name: str) -> str:
    return ".".join(part.capitalize() for part in name.split("."))
