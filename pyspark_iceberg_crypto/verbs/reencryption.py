"""New keys for all files of a table, after a leak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto._names import table_name
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports._report import Changed


@dataclass(frozen=True)
class ReencryptReport(Changed):
    """The files of a table's main branch, rewritten under new keys. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, and what is left to do.
        committed: whether the table was changed: not by a dry run, nor when it has no files.
        data_files: how many data files the main branch had.
        delete_files: how many delete files, which were applied.
        bytes: the bytes of both.
        left: how many earlier files and manifests the main branch still has.
        snapshots: how many other snapshots there are that may expire, and may reach earlier files.
        refs: the other branches and the tags, which keep such snapshots from expiry.
        expire_statement: the SQL that expires the other snapshots, except what streaming sinks look for; None if there
            are no others, of a dry run, of a table without files, and if other commits always came between.
    """

    data_files: int
    delete_files: int
    bytes: int
    left: int
    snapshots: int
    refs: str
    expire_statement: str | None

    @property
    def ok(self) -> bool:
        """Whether the main branch has no earlier file; a dry run does not check that, and is ok."""
        return self.left == 0


def reencrypt_table(
    spark: SparkSession,
    table: str,
    *,
    options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> ReencryptReport:
    """Write all files of a table's main branch again, under new keys: for when the key of a file leaked.

    A Spark job of Iceberg, `rewrite_data_files`, which applies deletes. Older snapshots, other branches and tags
    keep the earlier files, until they are expired and dropped; the result says how.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        options: options of `rewrite_data_files`, such as {"target-file-size-bytes": "536870912"}.
        dry_run: count files and bytes, and write nothing.

    Raises:
        TableNotFoundError: there is no such table.
        ConfigurationError: an option is one that this function sets itself.
        NotSupportedError: the table is not encrypted, or the catalog is not one of this project.
    """
    given = {key: str(value) for key, value in (options or {}).items()}
    found = _jvm.run(
        spark, "reencrypt_table", table=table_name(table), options=given, dry_run=bool(dry_run)
    )
    return ReencryptReport(**found)
