"""``rotate-parquet``: the wrapped keys beside Parquet files."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _session, _shared, _targets
from pyspark_iceberg_crypto.reports._report import Changed
from pyspark_iceberg_crypto.verbs.rotation_parquet import rotate_parquet_keys


@_session.command()
@click.argument("folder")
@_targets.confirm_option
def rotate_parquet(folder: str, confirm: bool, output: str) -> None:
    """Wrap the keys of Parquet files in FOLDER again.

    The newest versions of their master keys wrap them. This is for Spark's own Parquet files whose wrapped keys are in
    files beside them; the Parquet files do not change. Nobody may write to the folder meanwhile. For Iceberg tables use
    `iceberg-crypto rotate`.

    \b
    Example:
      iceberg-crypto rotate-parquet s3a://b/people --confirm \\
          --kms vault --address https://vault:8200 \\
          --token-file /etc/spark/vault-token

    Exit codes: 0 it is done, 2 it could not be done; another run continues, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)

    def do(confirm: bool) -> tuple[int, bool]:
        said = "the keys of the Parquet files in it would be wrapped again"
        done = rotate_parquet_keys(spark, folder) if confirm else Changed(folder, said, False)
        _shared.show_report(done, output)
        return _shared.OK, True

    with _shared.errors_told(), _session.session() as spark:
        code = _targets.confirmed(do, confirm, output)
    sys.exit(code)
