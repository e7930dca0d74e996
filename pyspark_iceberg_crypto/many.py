"""Verification beyond one table: of a catalog, a namespace, a plain folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

from pyspark.sql import DataFrame, SparkSession
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyspark_iceberg_crypto import _jvm, _render
from pyspark_iceberg_crypto._report import OK, PROBLEM, UNCHECKED, FileCount, Problem
from pyspark_iceberg_crypto._text import plural, size, visible
from pyspark_iceberg_crypto.errors import ConfigurationError, IcebergCryptoError
from pyspark_iceberg_crypto.evidence._evidence import TablesReport
from pyspark_iceberg_crypto.verify import VerifyReport, options_json, showing, verify_table

__all__ = ["CatalogReport", "FolderReport", "verify_catalog", "verify_folder"]


@dataclass(frozen=True)
class CatalogReport(TablesReport):
    """A `TablesReport`, which has the attributes, on what a catalog or a namespace has.

    Attributes:
        views: the views, which have no files of their own and were not looked at.
    """

    views: list[str] = field(default_factory=list)


def verify_catalog(
    spark: SparkSession,
    name: str,
    deep: bool = False,
    all_snapshots: bool = False,
    *,
    depth: str | None = None,
    sample: float = 1.0,
    seed: int = 0,
    strays: bool = False,
    resume: str | None = None,
    progress: bool | None = None,
) -> CatalogReport:
    """Check each table of a catalog, or of a namespace and those within it, as `verify_table` does.

    A table that cannot be checked does not stop the rest; the report then is not ok.

    Args:
        spark: a session that knows the catalog.
        name: a catalog ("lake") or a namespace ("lake.db" or "lake.db.*").
        deep: see `verify_table`, as for all that is not explained here.
        all_snapshots: see there.
        depth: see there.
        sample: see there.
        seed: see there.
        strays: see there.
        resume: the URI of a folder; in it each table has a folder of its own.
        progress: see there.

    Raises:
        ConfigurationError: an argument is wrong, or there is no such catalog or namespace.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"{name!r} cannot be a catalog's name", "for example 'lake'")
    options_json(deep, all_snapshots, depth, sample, seed, strays, resume)
    reports: list[VerifyReport] = []
    not_checked: list[dict[str, str]] = []
    views: list[str] = []
    for one in json.loads(_jvm.call(spark, "listTables", name)):
        table = one["name"]
        if one["view"]:
            views.append(table)
        elif one["failure"]:
            not_checked.append(_not_checked(table, one["failure"], one["hint"]))
        else:
            try:
                with verify_table(
                    spark,
                    table,
                    deep,
                    all_snapshots,
                    depth=depth,
                    sample=sample,
                    seed=seed,
                    strays=strays,
                    resume=resume and f"{resume.rstrip('/')}/{quote_plus(table)}",
                    progress=progress,
                ) as report:
                    reports.append(report)
            except IcebergCryptoError as error:
                not_checked.append(_not_checked(table, error.message, error.hint))
            except _jvm.UNTYPED as error:
                not_checked.append(_not_checked(table, _jvm.first_line(error), ""))
    return CatalogReport(name, reports, not_checked, views=views)


def _not_checked(table: str, problem: str, hint: str) -> dict[str, str]:
    return {"table": table, "problem": problem, "hint": hint}


@dataclass(frozen=True)
class FolderReport(_render.Shown):
    """What was found in a folder.

    The JVM keeps the list of files for ``files`` until ``close()``, or the end of a ``with`` block.

    Attributes:
        ok: each file is encrypted, table metadata, or empty.
        folder: the folder.
        file_count: how many files were looked at.
        byte_count: their length together.
        seconds: how long it took.
        counts: files by magic.
        problem_count: how many files are not encrypted.
        unchecked_count: how many could not be read.
        problems: the first thousand of both.
    """

    ok: bool
    folder: str
    file_count: int
    byte_count: int
    seconds: float
    counts: list[FileCount]
    problem_count: int
    unchecked_count: int
    problems: list[Problem]
    _spark: SparkSession | None = field(default=None, repr=False, compare=False)
    _result: Any = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """0 nothing is plaintext, 1 something is, 2 something could not be read."""
        if self.ok:
            return OK
        return PROBLEM if self.problem_count else UNCHECKED

    @property
    def files(self) -> DataFrame:
        """Each file: kind, path, format, length, magic, encrypted, problem, unchecked."""
        if self._spark is None or self._result is None:
            raise ConfigurationError(
                "this report holds no list of files", "call verify_folder again"
            )
        with _jvm.typed_errors():
            return _jvm.data_frame(self._spark, self._result.files())

    def close(self) -> None:
        """Let the JVM forget the list of files. Calling it again does nothing."""
        if self._result is not None:
            with _jvm.typed_errors():
                self._result.close()
            object.__setattr__(self, "_result", None)

    def __enter__(self) -> FolderReport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the list of files, ready for JSON."""
        told = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        told["counts"] = [dict(vars(count)) for count in self.counts]
        told["problems"] = [dict(vars(problem)) for problem in self.problems]
        return told


def verify_folder(spark: SparkSession, uri: str, *, progress: bool | None = None) -> FolderReport:
    """Look for plaintext in a folder and those in it: by each file's first bytes, without a catalog and a key.

    Table metadata (``*.metadata.json``) and Hadoop's checksums are plaintext by design, and so no problem.

    Args:
        spark: a session; it brings the storage's file systems.
        uri: a local path, or any URI that Spark or Iceberg can read.
        progress: whether to show on stderr how far it is; None: in a terminal and in a notebook.

    Raises:
        ConfigurationError: there is no file in it.
        IcebergCryptoError: the folder could not be listed.
    """
    if not str(uri).strip():
        raise ConfigurationError(f"{uri!r} cannot be a folder", "for example 's3://bucket/folder'")
    with showing(spark, str(uri), progress) as told:
        result = _jvm.call(spark, "verifyFolder", str(uri), told)
    with _jvm.typed_errors():
        found = json.loads(result.json())
    return FolderReport(
        ok=found["ok"],
        folder=found["folder"],
        file_count=found["files"],
        byte_count=found["bytes"],
        seconds=found["seconds"],
        counts=[FileCount(**count) for count in found["counts"]],
        problem_count=found["problem_count"],
        unchecked_count=found["unchecked_count"],
        problems=[Problem(**problem) for problem in found["problems"]],
        _spark=spark,
        _result=result,
    )


@_render.layout.register
def _folder(found: FolderReport) -> RenderableType:
    """Lay out what is in a folder: formats, the verdict, the first problems."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, side in (("", "left"), ("magic", "left"), ("files", "right"), ("bytes", "right")):
        table.add_column(column, justify="right" if side == "right" else "left")
    for count in found.counts:
        style, word = ("green", "encrypted") if count.encrypted else ("yellow", "not encrypted")
        magic = count.magic or "not read"
        table.add_row(Text(word, style), magic, f"{count.files:,}", size(count.bytes))
    lines: list[RenderableType] = [table]
    if found.ok:
        said = f"✓ no plaintext in {plural(found.file_count, 'file')} of {visible(found.folder)}"
        lines.append(Text(said, "bold green"))
    else:
        parts = [f"{found.problem_count:,} plaintext"] if found.problem_count else []
        parts += [f"{found.unchecked_count:,} not read"] if found.unchecked_count else []
        said = (
            f"✗ {', '.join(parts)} of {plural(found.file_count, 'file')} in {visible(found.folder)}"
        )
        lines.append(Text(said, "bold red"))
    for problem in found.problems[: _render.SHOWN_PROBLEMS]:
        lines.append(Text(f"  {visible(problem.path)}: {visible(problem.problem)}"))
    return Group(*lines)
