"""Verification beyond one table: of a catalog, a namespace, a plain folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.evidence._evidence import Evidence, VerifyTablesReport
from pyspark_iceberg_crypto.jvm import _connect, _jvm
from pyspark_iceberg_crypto.verbs import _progress
from pyspark_iceberg_crypto.verbs.verify import VerifyReport, checked_options, local, remote


def verify_catalog(
    spark: SparkSession,
    name: str,
    *,
    structure: bool = False,
    deep: bool = False,
    all_snapshots: bool = False,
    sample: float = 1.0,
    seed: int = 0,
    strays: bool = False,
    resume: str | None = None,
    since: str | Path | Evidence | None = None,
    since_key_id: str | None = None,
    recheck: float = 0.01,
    except_tables: Sequence[str] = (),
    threads: int = 8,
    progress: bool | None = None,
) -> VerifyTablesReport:
    """Check each table of a catalog, or of a namespace and those within it, as `verify_table` does.

    If a table cannot be checked, the others still are; the report is then not ok.

    Args:
        spark: a session that knows the catalog.
        name: a catalog ("lake") or a namespace ("lake.db" or "lake.db.*").
        structure: see `verify_table`, as for all that is not explained here.
        deep: see there.
        all_snapshots: see there.
        sample: see there.
        seed: see there.
        strays: see there.
        resume: the URI of a folder; in it each table has a folder of its own.
        since: see there. All files are checked of a table that is not in that report, or is not ok there, and recorded
            in resume, which such a table needs.
        since_key_id: see there.
        recheck: see there.
        except_tables: full names of tables that are not verified, because they should be plaintext. The report lists
            them in `left_out`, and is ok without them.
        threads: how many tables are verified at once, up to 64; 1: one after the other, and progress shows the steps
            of each.
        progress: see there.

    Raises:
        TableNotFoundError: there is no such namespace, or no table of a name in except_tables; nothing was verified.
        ConfigurationError: an argument is wrong, or there is no such catalog.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"{name!r} cannot be a catalog's name", "for example 'lake'")
    if isinstance(except_tables, str) or not all(isinstance(one, str) for one in except_tables):
        raise ConfigurationError(
            f"except_tables={except_tables!r} is not a list of tables", "for example ['lake.db.t']"
        )
    options = checked_options(
        structure=structure,
        deep=deep,
        all_snapshots=all_snapshots,
        sample=sample,
        seed=seed,
        strays=strays,
        resume=resume,
        since=since,
        since_key_id=since_key_id,
        recheck=recheck,
    )
    except_tables = list(except_tables)
    found = _progress.run(
        spark,
        name,
        progress,
        "verify_catalog",
        name=name,
        except_tables=except_tables,
        threads=threads,
        **options,
    )
    return VerifyTablesReport.of({"target": name, **found}, VerifyReport)


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
        progress: whether to show progress on stderr; None: in a terminal and in a notebook.

    Raises:
        ConfigurationError: there is no file in it.
        IcebergCryptoError: the folder could not be listed.
    """
    if not str(uri).strip():
        raise ConfigurationError(f"{uri!r} cannot be a folder", "for example 's3://bucket/folder'")
    with _progress.showing(spark, str(uri), progress) as told:
        if _connect.is_connect(spark):
            return remote(spark, "verify_folder", uri=str(uri), deep=bool(deep))
        return local(spark, _jvm.call(spark, "verifyFolder", str(uri), bool(deep), told))
