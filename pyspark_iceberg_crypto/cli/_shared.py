"""What the commands have in common: exit codes, errors, output, files, names."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO
from uuid import uuid4

import click
from rich.console import RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.cli._advice import spoken
from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    PlaintextFoundError,
    TamperedError,
    first_line,
)
from pyspark_iceberg_crypto.reports import _data, _terminal
from pyspark_iceberg_crypto.reports._layout import Screen, drop, hinted
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import visible

OK, PROBLEM, UNCHECKED = _data.OK, _data.PROBLEM, _data.UNCHECKED
LOG = f"{__name__}.log"  # the path of Spark's log, in click's meta
# Why a file cannot be replaced, and yet may be written to: it is mounted, or in a folder of others.
IN_PLACE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV)
USAGE = 64  # EX_USAGE of sysexits.h: neither a finding nor something that may work later


OUTPUT: dict[str, Any] = {
    "type": click.Choice(["text", "json"]),
    "default": "text",
    "show_default": True,
    "help": "How to print the result: as text, or as one JSON document.",
}
output_option = click.option("--output", **OUTPUT)


def show(shown: RenderableType, wrap: bool = True) -> None:
    """Print to standard output.

    Args:
        shown: what to print.
        wrap: whether a terminal may break lines. Elsewhere they stay whole.
    """
    _show(shown, sys.stdout, wrap)


def show_error(shown: RenderableType) -> None:
    """Print to standard error."""
    _show(shown, sys.stderr, True)


def _show(shown: RenderableType, stream: TextIO, wrap: bool) -> None:
    is_terminal = stream.isatty()
    width = None if is_terminal else _terminal.WIDTH
    Screen(file=stream, width=width).print(shown, soft_wrap=not (wrap and is_terminal))


def show_json(found: Any) -> None:
    """Print as JSON, which is then all of standard output."""
    print_whole(json.dumps(found, indent=2))


def print_whole(text: str) -> None:
    """Print text as it is to standard output, whether or not it is still read."""
    try:
        click.echo(text)
    except BrokenPipeError:
        drop(sys.stdout)


def show_report(found: Report, output: str) -> None:
    """Print a report as it was asked for: "text" or "json"."""
    if output == "json":
        show_json(found.to_dict())
    else:
        show(found)


def write(file: Path, text: str) -> None:
    """Write a file, where its folder allows it whole or not at all: the old one stays until the new one is written.

    Raises:
        ConfigurationError: it cannot be written.
    """
    try:
        if not _is_replaced(file, text):
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {error.strerror}", "give a file in a folder that is there"
        ) from error


def _is_replaced(file: Path, text: str) -> bool:
    """Replace a file by a new one; false if the one that is there must be written to, and is as it was."""
    if file.absolute().parts[1] in ("dev", "proc") or (file.exists() and not file.is_file()):
        return False  # /dev/stdout, or a pipe
    target = file.resolve()  # a link stays one
    beside = target.with_name(f".{uuid4().hex}.tmp")
    try:
        beside.touch()
        if target.exists():
            if target.stat().st_uid != beside.stat().st_uid:
                return False  # its owner would lose it
            shutil.copymode(target, beside)
        beside.write_text(text, encoding="utf-8")
        beside.replace(target)
        return True
    except OSError as error:
        if error.errno in IN_PLACE and target.exists():
            return False
        raise
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


class CommandLineError(ConfigurationError):
    """The command line is wrong, whatever the state of tables and keys."""


@contextmanager
def errors_told(findings: bool = False) -> Iterator[None]:
    """On an error, end with code 2 and two lines instead of a stack trace; as JSON, too, where that is asked for.

    Args:
        findings: whether what says that something was tampered with, or is plaintext, ends with code 1.
    """
    try:
        yield
    except click.ClickException:
        raise
    except CommandLineError as error:
        _fail(error, USAGE)
    except (KeyboardInterrupt, click.Abort):  # click would end with 1
        _fail(IcebergCryptoError("stopped before the end"))
    except Exception as error:  # noqa: BLE001 (code 1 would say that a problem was found)
        is_finding = findings and isinstance(error, TamperedError | PlaintextFoundError)
        _fail(error, PROBLEM if is_finding else UNCHECKED)


def told(error: Exception) -> tuple[str, str]:
    """Say what is wrong, and what to do about it, in the words of the command line."""
    message, hint = plain(error)
    is_ours = isinstance(error, IcebergCryptoError)
    return (spoken(message), spoken(hint)) if is_ours else (message, hint)


def plain(error: Exception) -> tuple[str, str]:
    """Say the same in the words of SQL and Python, for a report, which may be signed."""
    if isinstance(error, IcebergCryptoError):
        return error.message, error.hint
    is_sparks = any(kind.__name__ == "PySparkException" for kind in type(error).__mro__)
    hint = "is the catalog set up? see --catalog-conf and --conf" if is_sparks else ""
    return first_line(error), hint


def say(error: Exception) -> tuple[str, str]:
    """Print an error in two lines to standard error; return what `told` says of it."""
    message, hint = told(error)
    said = Text.assemble(("error: ", "red"), "\n".join(map(visible, message.splitlines())))
    show_error(hinted(said, hint))
    return message, hint


def _fail(error: Exception, code: int = UNCHECKED) -> NoReturn:
    message, hint = say(error)
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("output") == "json":
        url = getattr(error, "url", None)
        show_json({"error": type(error).__name__, "problem": message, "hint": hint, "url": url})
    sys.exit(code)


def end_log(meta: dict[str, Any], keep: bool) -> None:
    """Delete Spark's log, or say where it is."""
    log = meta.pop(LOG, None)
    if log is None:
        return
    if keep and log.stat().st_size:
        click.echo(f"log: {log}", err=True)
    else:
        log.unlink()


def pairs(settings: tuple[str, ...], example: str = "type=rest") -> dict[str, str]:
    """Read settings of the form KEY=VALUE.

    Raises:
        CommandLineError: one has another form.
    """
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise CommandLineError(f"{setting!r} is not KEY=VALUE", f"for example {example}")
        found[key] = value
    return found
