"""``rotate-parquet``: the wrapped keys beside Parquet files."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _session, _shared
from pyspark_iceberg_crypto.verbs.rotation_parquet import rotate_parquet_keys


@_session.command()
@click.argument("folder")
def rotate_parquet(folder: str, output: str) -> None:
    """Wrap the keys of the Parquet files below FOLDER again, with the newest versions of their master keys.

    For Spark's own Parquet files whose wrapped keys are in files beside them; the Parquet files do not change.
    Nobody may write to the folder meanwhile. Iceberg's tables are for `rotate`.

    \b
    Example:
      iceberg-crypto rotate-parquet s3a://bucket/people --kms vault --address https://vault:8200 --token-file t

    Exit code: 0 it is done, 2 it could not be done; another run continues, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told(), _session.session() as spark:
        done = rotate_parquet_keys(spark, folder)
    _shared.show_report(done, output)
