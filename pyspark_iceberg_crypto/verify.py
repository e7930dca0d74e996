"""The proof that a table's files are encrypted, and a look at a single file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto import _jvm, _render
from pyspark_iceberg_crypto._report import FileCount, FileReport, Problem, TableReport
from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError
from pyspark_iceberg_crypto.evidence import _html
from pyspark_iceberg_crypto.evidence._evidence import Evidence

__all__ = [
    "FileCount",
    "FileInspection",
    "Problem",
    "VerifyReport",
    "inspect_file",
    "verify_table",
]


@dataclass(frozen=True)
class VerifyReport(TableReport, Evidence):
    """A `TableReport`, which has the attributes; `Evidence` of what was found.

    The JVM keeps the list of files for ``files`` until ``close()``, or the end of a ``with`` block.
    """

    _spark: SparkSession | None = field(default=None, repr=False, compare=False)
    _result: Any = field(default=None, repr=False, compare=False)

    @property
    def files(self) -> DataFrame:
        """Each file checked: kind, path, format, length, magic, encrypted, problem."""
        if self._spark is None or self._result is None:
            raise ConfigurationError(
                "this report holds no list of files", "call verify_table again"
            )
        with _jvm.typed_errors():
            return _jvm.data_frame(self._spark, self._result.files())

    def close(self) -> None:
        """Let the JVM forget the list of files. Calling it again does nothing."""
        if self._result is not None:
            with _jvm.typed_errors():
                self._result.close()
            object.__setattr__(self, "_result", None)

    def __enter__(self) -> VerifyReport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def to_html(self) -> str:
        """Return one page for a browser or for print, which loads nothing from elsewhere."""
        return _html.page(self.table, [self], self.signature)

    def _repr_html_(self) -> str:
        return _html.note(self)


def verify_table(
    spark: SparkSession, table: str, deep: bool = False, all_snapshots: bool = False
) -> VerifyReport:
    """Check that every file that a table's metadata reaches is encrypted, by its first bytes.

    Args:
        spark: a session that knows the table's catalog.
        table: the table's name, such as "lake.db.t".
        deep: also decrypt every file. It comes in a later version.
        all_snapshots: check the files of all snapshots, not only of the current one.

    Raises:
        NotSupportedError: deep is asked for, or the table is no Iceberg table.
        IcebergCryptoError: the check could not be done; see the error's type.
        pyspark.errors.AnalysisException: there is no such table.
    """
    if deep:
        raise NotSupportedError(
            "deep=True (decrypting every file) comes in a later version",
            "leave deep out: every file's format is checked by its first bytes",
        )
    if not isinstance(table, str) or not table.strip():
        raise ConfigurationError(f"{table!r} cannot be a table's name", "for example 'lake.db.t'")
    result = _jvm.call(spark, "verifyTable", table, deep, all_snapshots)
    with _jvm.typed_errors():
        return VerifyReport.of(json.loads(result.json()), _spark=spark, _result=result)


@dataclass(frozen=True)
class FileInspection(_render.Shown, FileReport):
    """A `FileReport`, which has the attributes, that prints as text."""


def inspect_file(spark: SparkSession, path: str) -> FileInspection:
    """Tell what a file is, and how it is encrypted, from its bytes.

    Args:
        spark: a session; it brings the storage's file systems.
        path: a local path, or any URI that Spark can read.

    Raises:
        ConfigurationError: there is no such file, or it cannot be read.
        TamperedError: it says it is encrypted, but its structure is broken.
    """
    found = json.loads(_jvm.call(spark, "inspectFile", str(path)))
    known = FileInspection.__dataclass_fields__
    return FileInspection(**{key: value for key, value in found.items() if key in known})
