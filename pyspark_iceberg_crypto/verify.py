"""The proof that a table's files are encrypted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto import _jvm, _render
from pyspark_iceberg_crypto._report import FileCount, Problem, TableReport
from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError

__all__ = [
    "FileCount",
    "Problem",
    "VerifyReport",
    "verify_table",
]


@dataclass(frozen=True)
class VerifyReport(_render.Shown, TableReport):
    """A `TableReport`, which has the attributes, that prints as text and shows itself in a notebook.

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

    def _repr_html_(self) -> str:
        return _render.report_html(self)


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
