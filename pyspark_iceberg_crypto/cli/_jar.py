"""``iceberg-crypto jar``."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.settings import jar_path


@click.command()
@_shared.output_option
def jar(output: str) -> None:
    """Print the path of this project's jar.

    For `spark-submit --jars "$(iceberg-crypto jar)"`, and for an image's jars folder.

    \b
    Example:
      iceberg-crypto jar

    Exit code: 0 it is printed, 2 there is none, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        path = str(jar_path())
        if output == "json":
            _shared.show_json({"jar": path})
        else:
            click.echo(path)
