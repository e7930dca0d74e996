"""``demo``: the whole of it on real data."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.cli._help import Command
from pyspark_iceberg_crypto.demo import run  # needs Spark
from pyspark_iceberg_crypto.reports._layout import Screen


@click.command(cls=Command)
@click.option("--keep", is_flag=True, help="Keep the folder with the tables and keys.")
@_shared.output_option
def demo(keep: bool, output: str) -> None:
    """Encrypt 336,776 real flights, prove it, and try to read them without the key.

    With --output json, the story goes to standard error.

    \b
    Example:
      iceberg-crypto demo --keep

    Exit codes: 0 everything was as it must be, 2 it was not, or the demo could not run, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        is_json = output == "json"
        folder = run(keep=keep, console=Screen(stderr=is_json))
        if is_json:
            _shared.show_json({"done": True, "folder": folder and str(folder)})
