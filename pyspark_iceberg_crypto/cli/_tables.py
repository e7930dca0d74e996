"""``inspect`` and ``demo``."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.verify import FileInspection, inspect_file


@click.command()
@click.argument("path")
@_shared.conf_option
@_shared.output_option
def inspect(path: str, conf: tuple[str, ...], output: str) -> None:
    """Tell what the file at PATH is, by its bytes, and how it is encrypted.

    Exit code: 0 it is encrypted, 1 it is not, 2 it could not be read.
    """
    with _shared.errors_told(), _shared.session(conf) as spark:
        found = inspect_file(spark, path)
        _show(found, output)
    sys.exit(_shared.OK if found.encrypted else _shared.PROBLEM)


@click.command()
@click.option("--keep", is_flag=True, help="Keep the folder with the tables and keys.")
def demo(keep: bool) -> None:
    """Encrypt 336,776 real flights, prove it, and try to read them without the key."""
    from pyspark_iceberg_crypto.demo import run

    with _shared.errors_told():
        run(keep=keep)


def _show(found: FileInspection, output: str) -> None:
    if output == "json":
        _shared.show_json(found.to_dict())
    else:
        _shared.show(found)
