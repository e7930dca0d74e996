"""The proof that a table's files are encrypted, and a look at a single file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import RenderableType

from pyspark_iceberg_crypto import _jvm, _render
from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError


@dataclass(frozen=True)
class FileCount:
    """How many files of one kind have one format.

    Attributes:
        kind: what they are to the table: data, manifest, manifest list, deletion vectors, ...
        magic: what their first bytes say: PARE, AGS1 (encrypted), PAR1, AVRO, PUFFIN, ...
        encrypted: whether that is an encrypted format.
        files: how many there are.
        bytes: their length together.
    """

    kind: str
    magic: str
    encrypted: bool
    files: int
    bytes: int


@dataclass(frozen=True)
class Problem:
    """Something wrong with a table or one of its files.

    Attributes:
        kind: what the file is to the table.
        path: the file; empty when the problem is the table's.
        problem: what is wrong.
        hint: what to do about it.
    """

    kind: str
    path: str
    problem: str
    hint: str


@dataclass(frozen=True)
class VerifyReport:
    """What was found on checking a table. Prints as text, and shows itself in a notebook.

    The JVM keeps the list of files for ``files`` until ``close()``, or the end of a ``with`` block.

    Attributes:
        ok: the table has a key id, and each file that was checked is encrypted.
        table: the table's full name.
        key_id: the master key's id; None on a table without encryption.
        format_version: Iceberg's format version of the table.
        metadata_authenticated: whether each load of the table checks that nobody changed its metadata in the
            storage. ``ok`` does not say that: it is about the files that the metadata names.
        metadata_authentication: by what it is authenticated, or why it is not.
        all_snapshots: whether files of all snapshots were checked, or the current one's.
        snapshots: how many snapshots were checked.
        file_count: how many files were checked.
        byte_count: their length together.
        seconds: how long it took.
        counts: files by kind and magic.
        problem_count: how many problems there are.
        problems: the first thousand of them.
    """

    ok: bool
    table: str
    key_id: str | None
    format_version: int
    metadata_authenticated: bool
    metadata_authentication: str
    all_snapshots: bool
    snapshots: int
    file_count: int
    byte_count: int
    seconds: float
    counts: list[FileCount]
    problem_count: int
    problems: list[Problem]
    _spark: SparkSession | None = field(default=None, repr=False, compare=False)
    _result: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls, found: Mapping[str, Any], spark: SparkSession | None = None, result: Any = None
    ) -> VerifyReport:
        """Make a report of the JVM's JSON, and of the JVM's result for ``files``."""
        return cls(
            ok=found["ok"],
            table=found["table"],
            key_id=found["key_id"],
            format_version=found["format_version"],
            metadata_authenticated=found["metadata_authenticated"],
            metadata_authentication=found["metadata_authentication"],
            all_snapshots=found["all_snapshots"],
            snapshots=found["snapshots"],
            file_count=found["files"],
            byte_count=found["bytes"],
            seconds=found["seconds"],
            counts=[FileCount(**count) for count in found["counts"]],
            problem_count=found["problem_count"],
            problems=[Problem(**{k: v or "" for k, v in p.items()}) for p in found["problems"]],
            _spark=spark,
            _result=result,
        )

    @property
    def files(self) -> DataFrame:
        """Each file checked: kind, path, format, length, magic, encrypted, problem."""
        if self._spark is None or self._result is None:
            raise ConfigurationError(
                "this report holds no list of files", "call verify_table again"
            )
        with _jvm.typed_errors():
            return _jvm.data_frame(self._spark, self._result.files())

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the list of files, ready for JSON."""
        found = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        found["counts"] = [asdict(count) for count in self.counts]
        found["problems"] = [asdict(problem) for problem in self.problems]
        return found

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

    def __rich__(self) -> RenderableType:
        return _render.report(self)

    def __str__(self) -> str:
        return _render.text(_render.report(self))

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
        return VerifyReport.of(json.loads(result.json()), spark, result)


@dataclass(frozen=True)
class FileInspection:
    """What a file is, by its bytes. No key is needed to tell.

    Attributes:
        path: the file.
        length: its length in bytes.
        magic: what its first bytes say: PARE, AGS1 (encrypted), PAR1, AVRO, PUFFIN, ORC, JSON, EMPTY, OTHER.
        format: that, in words.
        encrypted: whether that is an encrypted format.
        block_size: AGS1: plaintext bytes in a block.
        block_count: AGS1: number of blocks.
        plaintext_length: AGS1: length of what is encrypted, in bytes, as the file's length tells it.
        algorithm: PARE: AES_GCM_V1 or AES_GCM_CTR_V1.
        footer_length: PARE: length of the footer, in bytes.
        aad_prefix_supplied: PARE: whether a reader must supply the AAD prefix.
    """

    path: str
    length: int
    magic: str
    format: str
    encrypted: bool
    block_size: int | None = None
    block_count: int | None = None
    plaintext_length: int | None = None
    algorithm: str | None = None
    footer_length: int | None = None
    aad_prefix_supplied: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the file, ready for JSON."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def __rich__(self) -> RenderableType:
        return _render.inspection(self)

    def __str__(self) -> str:
        return _render.text(_render.inspection(self))


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
