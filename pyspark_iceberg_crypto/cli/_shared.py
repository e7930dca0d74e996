"""What the commands have in common: options, exit codes, errors, files, and a quiet Spark session."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from rich.console import Console, RenderableType

from pyspark_iceberg_crypto._changes import Changed
from pyspark_iceberg_crypto._names import is_path, parts
from pyspark_iceberg_crypto.errors import ConfigurationError, IcebergCryptoError, first_line
from pyspark_iceberg_crypto.reports import _data, _terminal
from pyspark_iceberg_crypto.reports._text import visible
from pyspark_iceberg_crypto.settings import SESSION_CATALOG

if TYPE_CHECKING:  # commands that manage keys run without Spark
    from pyspark.sql import SparkSession

Command = TypeVar("Command", bound=Callable[..., Any])
OK, PROBLEM, UNCHECKED = _data.OK, _data.PROBLEM, _data.UNCHECKED

conf_option = click.option(
    "--conf", metavar="KEY=VALUE", multiple=True, help="A Spark setting. Can be repeated."
)
catalog_conf_option = click.option(
    "--catalog-conf",
    metavar="KEY=VALUE",
    multiple=True,
    help="A property of the catalog, such as type=rest, uri=..., encryption.kms-type=keystore. "
    "Without any, spark-defaults.conf sets up the catalog. Can be repeated.",
)
output_option = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)


def session_options(command: Command) -> Command:
    """Add what a command that starts Spark takes: `catalog_conf`, `conf`, `output`."""
    return catalog_conf_option(conf_option(output_option(command)))


def show(shown: RenderableType, wrap: bool = True) -> None:
    """Print to standard output.

    Args:
        shown: what to print.
        wrap: whether a terminal may break lines. Elsewhere they stay whole.
    """
    is_terminal = sys.stdout.isatty()
    width = None if is_terminal else _terminal.WIDTH
    Console(highlight=False, soft_wrap=not (wrap and is_terminal), width=width).print(shown)


def show_json(found: Any) -> None:
    """Print as JSON, which is then all of standard output."""
    click.echo(json.dumps(found, indent=2))


def show_done(done: Changed, output: str) -> None:
    """Print what was done to a table, as text or as JSON."""
    if output == "json":
        show_json(done.to_dict())
    else:
        show(done)


def write(file: Path, text: str) -> None:
    """Write a file.

    Raises:
        ConfigurationError: it cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {error.strerror}", "give a file in a folder that is there"
        ) from error


@contextmanager
def errors_told() -> Iterator[None]:
    """On an error, end with code 2 and two lines instead of a stack trace."""
    try:
        yield
    except click.ClickException:
        raise
    except KeyboardInterrupt:  # click would end with 1
        _fail("stopped before the end", "")
    except Exception as error:  # noqa: BLE001 (code 1 would say that a problem was found)
        _fail(*told(error))


def told(error: Exception) -> tuple[str, str]:
    """Say what is wrong, and what to do about it."""
    if isinstance(error, IcebergCryptoError):
        return error.message, error.hint
    is_sparks = any(kind.__name__ == "PySparkException" for kind in type(error).__mro__)
    hint = "is the catalog set up? see --catalog-conf and --conf" if is_sparks else ""
    return first_line(error), hint


def _fail(message: str, hint: str) -> NoReturn:
    click.echo(click.style("error: ", fg="red") + _lines(message), err=True)
    if hint:
        click.echo(click.style("hint: ", fg="yellow") + _lines(hint), err=True)
    sys.exit(UNCHECKED)


def _lines(text: str) -> str:
    """A text of several lines in which names of strangers do nothing to the terminal."""
    return "\n".join(map(visible, text.splitlines()))


def pairs(settings: tuple[str, ...], example: str = "type=rest") -> dict[str, str]:
    """Read settings of the form KEY=VALUE.

    Raises:
        ConfigurationError: one has another form.
    """
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{setting!r} is not KEY=VALUE", f"for example {example}")
        found[key] = value
    return found


def catalog_of(table: str) -> str:
    """Return the catalog's name in the full name of a table, or of many."""
    if is_path(table):
        return "lake"  # any: a path has none
    found = parts(table)
    return found[0] if len(found) > 2 or is_whole(table) else SESSION_CATALOG


def is_whole(target: str) -> bool:
    """Tell whether a name is that of a catalog ("lake"), or of all tables of a namespace ("lake.db.*")."""
    found = parts(target)
    return not is_path(target) and (len(found) == 1 or found[-1] == "*")


@contextmanager
def session(
    conf: tuple[str, ...],
    catalog: str | Sequence[str] = "",
    properties: dict[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Run a Spark session whose own output stays in a file, shown only when it did not start.

    Args:
        conf: Spark's settings, KEY=VALUE.
        catalog: the catalog to set up, or several.
        properties: its properties, the same for each; None or empty: spark-defaults.conf sets them up.
    """
    from pyspark_iceberg_crypto import _jvm, _quiet
    from pyspark_iceberg_crypto.session import configure_spark, prepare

    builder = _quiet.builder("iceberg-crypto")
    for key, value in pairs(conf).items():
        builder.config(key, value)
    if properties:
        for name in [catalog] if isinstance(catalog, str) else catalog:
            configure_spark(builder, name, options=properties)
    else:
        prepare(builder)
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-") as folder:
        spark = _start(builder, Path(folder) / "spark.log")
        try:
            yield spark
        finally:
            _jvm.shut_down(spark)


class SparkNotStartedError(IcebergCryptoError):
    """Spark did not start; what it said is on standard error."""


def _start(builder: SparkSession.Builder, log: Path) -> SparkSession:
    from pyspark_iceberg_crypto import _quiet

    try:
        with _quiet.output_to(log):
            return builder.getOrCreate()
    except Exception as error:
        said: list[Any] = log.read_text(errors="replace").splitlines()[-30:]
        click.echo("\n".join(said), err=True)
        raise SparkNotStartedError(
            f"Spark did not start: {first_line(error)}", "see its output above"
        ) from error
