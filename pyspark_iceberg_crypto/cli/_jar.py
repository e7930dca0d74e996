"""``iceberg-crypto jar``."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli._shared import errors_told
from pyspark_iceberg_crypto.settings import jar_path


@click.command()
def jar() -> None:
    """Print the path of this project's jar.

    For `spark-submit --jars "$(iceberg-crypto jar)"`, and for an image's jars folder.
    """
    with errors_told():
        click.echo(jar_path())
