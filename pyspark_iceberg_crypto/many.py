"""Verification beyond one table: of a catalog, a namespace, a plain folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_plus

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import _connect, _jvm
from pyspark_iceberg_crypto._typed import UNTYPED
from pyspark_iceberg_crypto.errors import (
    CancelledError,
    ConfigurationError,
    IcebergCryptoError,
    NotSupportedError,
    first_line,
)
from pyspark_iceberg_crypto.evidence._evidence import TablesReport
from pyspark_iceberg_crypto.verify import (
    VerifyReport,
    checked_options,
    local,
    remote,
    showing,
    verify_table,
)

__all__ = ["verify_catalog", "verify_folder"]


def verify_catalog(
    spark: SparkSession,
    name: str,
    *,
    deep: bool = False,
    all_snapshots: bool = False,
    depth: str | None = None,
    sample: float = 1.0,
    seed: int = 0,
    strays: bool = False,
    resume: str | None = None,
    except_tables: Sequence[str] = (),
    progress: bool | None = None,
) -> TablesReport:
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
        except_tables: full names of tables that are not verified, as they are meant to be plaintext. The report lists
            them in `left_out`, and is ok without them.
        progress: see there.

    Raises:
        ConfigurationError: an argument is wrong, there is no such catalog or namespace, or it has no table of a name in
            except_tables; nothing was verified then.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"{name!r} cannot be a catalog's name", "for example 'lake'")
    if isinstance(except_tables, str) or not all(isinstance(one, str) for one in except_tables):
        raise ConfigurationError(
            f"except_tables={except_tables!r} is no list of tables", "for example ['lake.db.t']"
        )
    options: dict[str, Any] = {
        "deep": deep,
        "all_snapshots": all_snapshots,
        "depth": depth,
        "sample": sample,
        "seed": seed,
        "strays": strays,
        "resume": resume,
    }
    checked_options(**options)
    selected = select_tables(spark, name, except_tables)
    return verify_selected(spark, name, selected, **options, progress=progress)


def select_tables(spark: SparkSession, name: str, except_tables: Sequence[str]) -> dict[str, Any]:
    """List what is to be verified of a catalog or a namespace, and what was left out.

    Raises:
        ConfigurationError: there is no table of a name in except_tables.
    """
    found: dict[str, Any] = _jvm.run(
        spark, "select_tables", name=name, except_tables=list(except_tables)
    )
    return found


def verify_selected(
    spark: SparkSession,
    name: str,
    selected: dict[str, Any],
    *,
    resume: str | None,
    progress: bool | None = None,
    **options: Any,
) -> TablesReport:
    """Check what `select_tables` has listed. The options are all those of `verify_catalog`.

    Raises:
        ConfigurationError: an option is wrong; nothing was verified then.
    """
    checked_options(**options, resume=resume)
    reports: list[VerifyReport] = []
    not_checked: list[dict[str, str]] = []
    views: list[str] = []
    for one in selected["listed"]:
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
                    **options,
                    resume=resume and f"{resume.rstrip('/')}/{quote_plus(table)}",
                    progress=progress,
                ) as report:
                    reports.append(report)
            except CancelledError:
                raise
            except IcebergCryptoError as error:
                if not _is_dropped(spark, table, error):
                    not_checked.append(_not_checked(table, error.message, error.hint))
            except UNTYPED as error:
                not_checked.append(_not_checked(table, first_line(error), ""))
    return TablesReport(name, reports, not_checked, views, selected["leftOut"])


def _is_dropped(spark: SparkSession, table: str, error: IcebergCryptoError) -> bool:
    """Tell whether a table that was listed cannot be loaded because it was dropped since."""
    is_none = isinstance(error, NotSupportedError) and "There is no Iceberg table" in error.message
    return is_none and not _jvm.run(spark, "is_listed", name=table)


def _not_checked(table: str, problem: str, hint: str | None) -> dict[str, str]:
    return {"table": table, "problem": problem, "hint": hint or ""}


def verify_folder(
    spark: SparkSession, uri: str, *, deep: bool = False, progress: bool | None = None
) -> VerifyReport:
    """Look for plaintext in a folder and those in it: by each file's first bytes, without a catalog.

    Table metadata (``*.metadata.json``) and Hadoop's checksums are plaintext by design, and so no problem. Of Parquet
    files with keys for columns, the session's KMS opens the footers. What Hudi and Delta write beside their Parquet
    files has kinds of its own, such as "hudi timeline", "hudi column stats" and "delta log": see docs/hudi.md.

    Args:
        spark: a session; it brings the storage's file systems, and the KMS of `ParquetKeys`.
        uri: a local path, or any URI that Spark or Iceberg can read.
        deep: also read all pages of Parquet files that have keys for columns, on the executors. An encrypted file whose
            key is elsewhere, as that of an Iceberg table is, then counts as not checked.
        progress: whether to show on stderr how far it is; None: in a terminal and in a notebook.

    Raises:
        ConfigurationError: there is no file in it.
        IcebergCryptoError: the folder could not be listed.
    """
    if not str(uri).strip():
        raise ConfigurationError(f"{uri!r} cannot be a folder", "for example 's3://bucket/folder'")
    with showing(spark, str(uri), progress) as told:
        if _connect.is_connect(spark):
            return remote(spark, "verify_folder", uri=str(uri), deep=bool(deep))
        return local(spark, _jvm.call(spark, "verifyFolder", str(uri), bool(deep), told))
