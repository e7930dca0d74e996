"""The command ``iceberg-crypto``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from pyspark_iceberg_crypto import __version__
from pyspark_iceberg_crypto.cli import _advice, _shared
from pyspark_iceberg_crypto.cli._help import Command, Group
from pyspark_iceberg_crypto.cli._options import named
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.reports._text import SPEECH

_JOBS = {
    "Start": ("demo", "doctor", "kms"),
    "Read": ("cat", "readers"),
    "Audit": ("verify", "report", "inspect", "keys"),
    "Migrate": ("encrypt", "purge", "decrypt"),
    "Operate": ("rotate", "rotate-parquet", "reencrypt", "prune", "repair"),
    "Integrate": ("jar", "schema", "completion"),
}
_COMMANDS = sorted(name for names in _JOBS.values() for name in names)


class _Commands(Group):
    """Imports a command when it is asked for: most need Spark, which takes a second and may be missing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        try:
            name = cmd_name.replace("-", "_")
            module = import_module(f"{__name__}._{name}")
            found: click.Command = getattr(module, name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j"):
                raise
            return _without_spark(cmd_name)
        return found

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **kwargs: Any
    ) -> click.Context:
        self._is_json = named(args, "--output") == "json"
        with _code_of_usage(self._is_json):
            return super().make_context(info_name, args, *more, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and keep Spark's log only if it failed."""
        code: Any = _shared.UNCHECKED
        before = SPEECH.set(_advice.spoken)
        try:
            with _code_of_usage(self._is_json):
                found = super().invoke(ctx)
            code = _shared.OK
        except SystemExit as ended:
            code = ended.code
            raise
        except click.exceptions.Exit as ended:
            code = ended.exit_code
            raise
        finally:
            SPEECH.reset(before)
            _shared.end_log(ctx.meta, keep=code not in (_shared.OK, _shared.PROBLEM))
        return found


@contextmanager
def _code_of_usage(is_json: bool) -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.exit_code = _shared.USAGE  # type: ignore[misc]  # click reads it of the instance
        if is_json:
            hint = f"see {error.ctx.command_path} --help" if error.ctx is not None else ""
            told = {"error": type(error).__name__, "problem": error.format_message(), "hint": hint}
            _shared.show_json({**told, "url": None})
        raise


def _without_spark(name: str) -> click.Command:
    hint = "pip install 'pyspark-iceberg-crypto[spark]'"

    def refuse(_: tuple[str, ...]) -> None:
        with _shared.errors_told():
            raise ConfigurationError(f"{name} needs Spark, which is not installed", hint)

    return Command(
        name,
        callback=refuse,
        params=[click.Argument(["_"], nargs=-1)],
        help=f"This command needs Spark: {hint}.",
        context_settings={"ignore_unknown_options": True},
    )


@click.group(cls=_Commands, jobs=_JOBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Encrypt Apache Iceberg tables, prove that they are encrypted, and manage their keys.

    A profile, ~/.config/iceberg-crypto.yaml, keeps catalogs and their KMSs, so you need not type them. A command that
    changes tables first says what it would do: --confirm does it.

    \b
    Examples:
      iceberg-crypto kms create-key sales
      iceberg-crypto doctor --key-id sales
      iceberg-crypto verify lake.db.t

    \b
    Exit codes:
      0   All is well: everything is encrypted, or it is done.
      1   A problem was found, such as a plaintext file.
      2   It could not be checked or done. See standard error.
      64  The command is wrong: an option or an argument.
    """  # noqa: D301 (click's mark for lines to leave as they are)
