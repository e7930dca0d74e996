"""Newly wrapped keys for existing Parquet files of Spark's own."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import SparkSession
from rich.console import RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import agreeing, plural


@dataclass(frozen=True)
class RotateParquetReport(Report):
    """What `rotate_parquet_keys` did. It prints as text.

    Attributes:
        folder: where.
        folders: how many folders have files.
        files: how many Parquet files have newly wrapped keys.
        restored: how many of them an earlier run, which was killed, had left unreadable.
    """

    folder: str
    folders: int
    files: int
    restored: int


@_terminal.layout.register
def _(found: RotateParquetReport) -> RenderableType:
    verb = agreeing(found.files, "has", "have")
    where = f"{plural(found.files, 'file')} in {plural(found.folders, 'folder')}"
    said = f"{where} {verb} newly wrapped keys"
    if found.restored:
        said += f"\n{found.restored:,} of them were unreadable because a run was killed"
    return Text(said)


def rotate_parquet_keys(spark: SparkSession, folder: str) -> RotateParquetReport:
    """Wrap the keys of the Parquet files below a folder again, with the newest versions of their master keys.

    The files have their wrapped keys beside them (``ParquetKeys(key_material_beside=True)``), and stay as they are.
    Nobody may write to the folder meanwhile. The next run completes one that was killed.

    Args:
        spark: a session with the KMS, see ``configure_spark(parquet_columns=...)``.
        folder: the folder of a table.

    Raises:
        ConfigurationError: there is no such folder, or no file in it.
        NotSupportedError: a file has its wrapped keys in itself; nothing was changed.
        KmsUnavailableError: the KMS cannot be reached.
        AccessDeniedError: a master key may not be used.
        KeyNotFoundError: a master key is not there.
        NoSessionError: there is no session.
        SparkConnectError: it is a Spark Connect session.
    """
    return RotateParquetReport(**json.loads(_jvm.call(spark, "rotateParquetKeys", folder)))
