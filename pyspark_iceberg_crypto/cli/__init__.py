"""The command ``iceberg-crypto``."""

from __future__ import annotations

from importlib import import_module

import click

from pyspark_iceberg_crypto import __version__
from pyspark_iceberg_crypto.cli._shared import errors_told
from pyspark_iceberg_crypto.errors import ConfigurationError

_COMMANDS = (
    "decrypt",
    "demo",
    "doctor",
    "encrypt",
    "inspect",
    "jar",
    "keys",
    "kms",
    "prune",
    "reencrypt",
    "repair",
    "report",
    "rotate",
    "verify",
)


class _Commands(click.Group):
    """Imports a command when it is asked for: most need Spark, which takes a second and may be missing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        try:
            found: click.Command = getattr(import_module(f"{__name__}._{name}"), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j"):
                raise
            return _without_spark(name)
        return found


def _without_spark(name: str) -> click.Command:
    hint = "pip install 'pyspark-iceberg-crypto[spark]'"

    def refuse(_: tuple[str, ...]) -> None:
        with errors_told():
            raise ConfigurationError(f"{name} needs Spark, which is not installed", hint)

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["_"], nargs=-1)],
        help=f"Needs Spark: {hint}",
        context_settings={"ignore_unknown_options": True},
    )


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Apache Iceberg table encryption: proof, keys, and a demonstration.

    \b
    Exit codes:
      0  all is well: everything is encrypted, every key can be used, it is done
      1  a problem was found: a file or table that is not encrypted, a step that failed
      2  it could not be checked or done; standard error says why
    """  # noqa: D301 (click's mark for lines to leave as they are)
