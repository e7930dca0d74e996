"""The command ``iceberg-crypto``.

Exit codes: 0 everything is encrypted, 1 a problem was found, 2 it could not be checked.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from pyspark_iceberg_crypto import __version__, _jvm, _quiet
from pyspark_iceberg_crypto.errors import ConfigurationError, IcebergCryptoError
from pyspark_iceberg_crypto.session import configure_spark, prepare
from pyspark_iceberg_crypto.verify import FileInspection, VerifyReport, inspect_file, verify_table

OK, PROBLEM, UNCHECKED = 0, 1, 2

_conf = click.option(
    "--conf", metavar="KEY=VALUE", multiple=True, help="A Spark setting. Can be repeated."
)
_catalog_conf = click.option(
    "--catalog-conf",
    metavar="KEY=VALUE",
    multiple=True,
    help="A property of the table's catalog, such as type=rest, uri=..., "
    "encryption.kms-type=keystore. Without any, spark-defaults.conf sets up the catalog. "
    "Can be repeated.",
)
_output = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Apache Iceberg table encryption: proof, and a demonstration."""


@main.command()
@click.argument("table")
@click.option("--all-snapshots", is_flag=True, help="Check the files of all snapshots.")
@_catalog_conf
@_conf
@_output
def verify(
    table: str,
    all_snapshots: bool,
    catalog_conf: tuple[str, ...],
    conf: tuple[str, ...],
    output: str,
) -> None:
    """Check that every file of TABLE (such as lake.db.t) is encrypted."""
    with _errors_told(), _session(conf, _catalog_of(table), _pairs(catalog_conf)) as spark:
        report = verify_table(spark, table, all_snapshots=all_snapshots)
        _show(report, output)
    sys.exit(OK if report.ok else PROBLEM)


@main.command()
@click.argument("path")
@_conf
@_output
def inspect(path: str, conf: tuple[str, ...], output: str) -> None:
    """Tell what the file at PATH is, by its bytes, and how it is encrypted."""
    with _errors_told(), _session(conf) as spark:
        found = inspect_file(spark, path)
        _show(found, output)
    sys.exit(OK if found.encrypted else PROBLEM)


@main.command()
@click.option("--keep", is_flag=True, help="Keep the folder with the tables and keys.")
def demo(keep: bool) -> None:
    """Encrypt 336,776 real flights, prove it, and try to read them without the key."""
    from pyspark_iceberg_crypto.demo import run

    with _errors_told():
        run(keep=keep)


def _show(found: VerifyReport | FileInspection, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        Console(highlight=False, soft_wrap=not sys.stdout.isatty()).print(found)


@contextmanager
def _errors_told() -> Iterator[None]:
    """End with code 2 and two lines instead of a stack trace."""
    try:
        yield
    except IcebergCryptoError as error:
        _fail(error.message, error.hint)
    except PySparkException as error:
        _fail(_jvm.first_line(error), "is the catalog set up? see --catalog-conf and --conf")
    except Exception as error:  # noqa: BLE001 (code 1 would say that a problem was found)
        _fail(_jvm.first_line(error), "")


def _fail(message: str, hint: str) -> NoReturn:
    click.echo(click.style("error: ", fg="red") + message, err=True)
    if hint:
        click.echo(click.style("hint: ", fg="yellow") + hint, err=True)
    sys.exit(UNCHECKED)


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{setting!r} is not KEY=VALUE", "for example type=rest")
        found[key] = value
    return found


def _catalog_of(table: str) -> str:
    """Return the catalog's name in a table's full name."""
    parts = table.split(".")
    return parts[0] if len(parts) > 2 else "spark_catalog"


@contextmanager
def _session(
    conf: tuple[str, ...], catalog: str = "", properties: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """Run a Spark session whose own output stays in a file, shown only when it did not start."""
    builder = _quiet.builder("iceberg-crypto")
    for key, value in _pairs(conf).items():
        builder.config(key, value)
    if properties:
        configure_spark(builder, catalog, options=properties)
    else:
        prepare(builder)
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-") as folder:
        spark = _start(builder, Path(folder) / "spark.log")
        try:
            yield spark
        finally:
            _jvm.shut_down(spark)


def _start(builder: SparkSession.Builder, log: Path) -> SparkSession:
    try:
        with _quiet.output_to(log):
            return builder.getOrCreate()
    except Exception as error:
        said: list[Any] = log.read_text(errors="replace").splitlines()[-30:]
        click.echo("\n".join(said), err=True)
        raise IcebergCryptoError(
            f"Spark did not start: {_jvm.first_line(error)}", "see its output above"
        ) from error
