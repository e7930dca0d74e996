"""``iceberg-crypto jar``."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.cli._help import Command
from pyspark_iceberg_crypto.settings import jar_path


@click.command(cls=Command)
@click.option(
    "--spark",
    metavar="VERSION",
    help="The version of Spark, such as 4.0, or with the version of Scala, 3.5_2.13.",
)
@_shared.output_option
def jar(spark: str | None, output: str) -> None:
    """Print the path of this project's jar.

    For `spark-submit --jars "$(iceberg-crypto jar)"`, and for an image's jars folder. Without --spark it is the jar for
    the Spark that is installed here, or the newest if none is.

    \b
    Example:
      iceberg-crypto jar --spark 4.0

    Exit codes: 0 it is printed, 2 it does not exist, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        path = str(jar_path(spark=spark))
        if output == "json":
            _shared.show_json({"jar": path})
        else:
            _shared.print_whole(path)
