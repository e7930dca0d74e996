"""``schema``: what --output json prints, as JSON schemas."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto.cli import _shared
from pyspark_iceberg_crypto.cli._help import Command
from pyspark_iceberg_crypto.schemas import output_commands, output_schema


@click.command(cls=Command)
@click.argument("command", type=click.Choice(output_commands()))
def schema(command: str) -> None:
    """Print the JSON schema of what a command prints with --output json.

    The schema (2020-12) includes errors.

    \b
    Examples:
      iceberg-crypto schema verify
      iceberg-crypto schema 'kms create-key'

    Exit codes: 0 it is printed, 2 it could not be, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        _shared.show_json(output_schema(command))
