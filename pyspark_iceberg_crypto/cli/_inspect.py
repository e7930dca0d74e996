"""``inspect``: what files are, and whether they are what was written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.cli import _python_alone, _session, _shared, _targets
from pyspark_iceberg_crypto.errors import (
    IcebergCryptoError,
    PlaintextFoundError,
    TamperedError,
)
from pyspark_iceberg_crypto.local import _files
from pyspark_iceberg_crypto.reports._layout import hinted
from pyspark_iceberg_crypto.reports._text import advice
from pyspark_iceberg_crypto.verbs.inspection import (
    FileInspection,
    FileKey,
    inspect_file,
    inspect_local,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINDINGS = (
    TamperedError,
    PlaintextFoundError,
)  # about the file; other errors kept it from being read


@_session.command()
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--expect-encrypted", is_flag=True, help="Report a file that is not encrypted as a problem."
)
@click.option("--table", help="Check tags with the key that this table has for the file.")
@click.option("--key-file", metavar="FILE", help="Check tags with the DEK in this file, in hex.")
@click.option("--key-env", metavar="NAME", help="The same, from an environment variable.")
@click.option("--aad-prefix", metavar="HEX", help="The AAD prefix that belongs to that DEK.")
@click.option(
    "--decrypt-to",
    metavar="FILE",
    help="Write the content of an AES GCM stream, decrypted, into a new file. For forensics.",
)
@click.option(
    "--pages",
    is_flag=True,
    help="Read the columns of Parquet and ORC files with keys, by --kms: all pages.",
)
@_python_alone.option
def inspect(
    paths: tuple[str, ...],
    expect_encrypted: bool,
    output: str,
    pages: bool,
    without_spark: bool,
    **keys: str | None,
) -> None:
    """Identify files by their bytes, and say how they are encrypted.

    A local file needs no JVM, unless its tags are checked; s3:// and others are read by Spark. --catalog-conf
    is for the catalog of --table. JSON is one object for one file, and a list of them for several.

    \b
    Examples:
      iceberg-crypto inspect data/*.parquet --expect-encrypted
      iceberg-crypto inspect /w/f.parquet --table lake.db.t

    Exit codes: 0 every file was read and its structure is whole (plaintext included), 1 one is damaged, a tag
    does not match, or is plaintext but should not be (--expect-encrypted, --table, --key-file), 2 one
    could not be read or checked, 64 the command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        asked = _asked(paths, keys)
        if pages:
            asked["pages"] = True
        if without_spark:
            found = [
                _inspected(path, expect_encrypted, partial(_python_alone.inspect, path, asked))
                for path in paths
            ]
        else:
            with _spark(paths, asked) as spark:
                found = [
                    _inspected(path, expect_encrypted, partial(_look, spark, path, asked))
                    for path in paths
                ]
    if output == "json":
        told = [one.to_dict() for one in found]
        _shared.show_json(told if len(told) > 1 else told[0])
    else:
        shown: list[RenderableType] = []
        for one in found:
            shown += [one.laid_out(), Text("")]
        _shared.show(Group(*shown[:-1]))
    for one in found:
        if one.inspection is not None and one.inspection.decrypted_to:
            said = f"{one.inspection.decrypted_to} is not encrypted: delete it when you are done"
            click.echo(f"warning: {said}", err=True)
    sys.exit(
        max((one.code for one in found), key=(_shared.OK, _shared.UNCHECKED, _shared.PROBLEM).index)
    )


class _Inspected:
    """What was found of one file: an inspection, a problem, or both."""

    def __init__(
        self, path: str, inspection: Any, code: int, message: str = "", hint: str = ""
    ) -> None:
        self.path, self.inspection, self.code = path, inspection, code
        self.message, self.hint = message, hint

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = (
            {"path": self.path} if self.inspection is None else self.inspection.to_dict()
        )
        if self.message:
            told |= {"problem": self.message, "hint": self.hint}
            told["unchecked"] = self.code == _shared.UNCHECKED
        return dict(told)

    def laid_out(self) -> RenderableType:
        parts: list[RenderableType] = [] if self.inspection is None else [self.inspection]
        if self.message:
            parts.append(hinted(Text.assemble(("✗ ", "red"), advice(self.message)), self.hint))
        return Group(*parts)


def _asked(paths: tuple[str, ...], keys: dict[str, str | None]) -> dict[str, Any]:
    """Make the arguments of inspect_file.

    Raises:
        CommandLineError: options contradict each other.
    """
    given = {name: value for name, value in keys.items() if value is not None}
    asked: dict[str, Any] = {}
    if "table" in given:
        asked["table"] = given["table"]
    if "key_file" in given or "key_env" in given:
        if "aad_prefix" not in given:
            raise _shared.CommandLineError(
                "a DEK without --aad-prefix", "both are in the file's key metadata"
            )
        asked["key"] = FileKey(given.get("key_file"), given.get("key_env"), given["aad_prefix"])
    elif "aad_prefix" in given:
        raise _shared.CommandLineError("--aad-prefix without a DEK", "give --key-file or --key-env")
    if "decrypt_to" in given:
        if len(paths) > 1:
            raise _shared.CommandLineError("--decrypt-to is for one file", "give one FILE")
        asked["decrypt_to"] = given["decrypt_to"]
    return asked


@contextmanager
def _spark(paths: tuple[str, ...], asked: dict[str, Any]) -> Iterator[SparkSession | None]:
    """Start Spark if it is needed."""
    if not asked and all(_files.local_path(path) is not None for path in paths):
        yield None
        return
    table = asked.get("table")
    with _targets.opened([table] if table else []) as spark:
        yield spark


def _look(spark: SparkSession | None, path: str, asked: dict[str, Any]) -> FileInspection:
    return inspect_local(path) if spark is None else inspect_file(spark, path, **asked)


def _inspected(path: str, expect_encrypted: bool, look: Callable[[], FileInspection]) -> _Inspected:
    try:
        found = look()
    except _shared.CommandLineError:
        raise
    except IcebergCryptoError as error:
        code = _shared.PROBLEM if isinstance(error, FINDINGS) else _shared.UNCHECKED
        return _Inspected(path, None, code, error.message, error.hint)
    if expect_encrypted and found.unknown is not None:
        says = f"which columns of {path} are encrypted is not known: {found.unknown}"
        return _Inspected(path, found, _shared.UNCHECKED, says, "give --kms and --pages")
    if found.columns_left:
        says = f"pages of {path} were not read: those of {', '.join(found.columns_left)}"
        return _Inspected(
            path, found, _shared.UNCHECKED, says, "use a login that may use their keys"
        )
    if expect_encrypted and not found.encrypted and found.footer is not None:
        says = f"the footer of {path}, or one of its columns, is not encrypted"
        return _Inspected(path, found, _shared.PROBLEM, says, "find out who wrote it")
    if expect_encrypted and not found.encrypted:
        says = f"{path} is not encrypted: it starts with {found.magic}"
        return _Inspected(path, found, _shared.PROBLEM, says, "find out who wrote it")
    return _Inspected(path, found, _shared.OK)
