"""``demo``: the whole of it on real data."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _shared


@click.command()
@click.option("--keep", is_flag=True, help="Keep the folder with the tables and keys.")
def demo(keep: bool) -> None:
    """Encrypt 336,776 real flights, prove it, and try to read them without the key."""
    from pyspark_iceberg_crypto.demo import run

    with _shared.errors_told():
        run(keep=keep)
