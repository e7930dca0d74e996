"""``iceberg-crypto jar``."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli._shared import errors_told
from pyspark_iceberg_crypto.settings import jar_path


@click.command()
@click.option("--spark", metavar="VERSION", help="Of the Spark it is for, such as 4.0.")
def jar(spark: str | None) -> None:
    """Print the path of this project's jar.

    For `spark-submit --jars "$(iceberg-crypto jar)"`, and for an image's jars folder. Without --spark it is the jar for
    the Spark that is installed here, and the newest where there is none.
    """
    with errors_told():
        click.echo(jar_path(spark))
