"""What keeps an encrypted table in order: no keys that nothing needs, and new keys for all files after a leak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import _jvm
from pyspark_iceberg_crypto._changes import Changed
from pyspark_iceberg_crypto._names import table_name

__all__ = ["KeyPruning", "TableReencryption", "prune_encryption_keys", "reencrypt_table"]


@dataclass(frozen=True)
class KeyPruning(Changed):
    """The keys that a table's metadata no longer has. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether the table was changed: not by a dry run, nor when all keys are needed.
        keys_before: how many keys the metadata had.
        removed: how many of them went.
        kept: how many it still has.
        bytes_before: the size of the metadata before, as JSON that is not compressed.
        bytes_after: its size without these keys.
    """

    keys_before: int
    removed: int
    kept: int
    bytes_before: int
    bytes_after: int


def prune_encryption_keys(spark: SparkSession, table: str, *, dry_run: bool = False) -> KeyPruning:
    """Remove the keys that nothing needs from a table's metadata.

    Commits of this project's catalogs do so by themselves; this is for tables that grew under stock Iceberg.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        dry_run: do everything but the commit.

    Raises:
        ConfigurationError: there is no such table.
        NotSupportedError: the table is not encrypted, or the catalog is not one of this project.
    """
    found = _jvm.run(spark, "prune_encryption_keys", table=table_name(table), dry_run=bool(dry_run))
    return KeyPruning(**found)


@dataclass(frozen=True)
class TableReencryption(Changed):
    """The files of a table's main branch, written anew under new keys. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, and what is left to do.
        committed: whether the table was changed: not by a dry run, nor when it has no files.
        data_files: how many data files the main branch had.
        delete_files: how many delete files, which were applied.
        bytes: the bytes of both.
        left: how many files and manifests of before the main branch still has.
        snapshots: how many other snapshots there are, which may reach files of before.
        refs: the other branches and the tags, which keep such snapshots from expiry.
        expire_statement: the SQL that expires the other snapshots; None when there are none.
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
        """Whether the main branch has no file of before; a dry run leaves that open, and is ok."""
        return self.left == 0


def reencrypt_table(
    spark: SparkSession,
    table: str,
    *,
    options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> TableReencryption:
    """Write all files of a table's main branch anew, under new keys: for when the key of a file leaked.

    A Spark job of Iceberg, `rewrite_data_files`, which applies deletes. Older snapshots, other branches and tags
    keep the files of before, until they are expired and dropped; the result says how.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        options: options of `rewrite_data_files`, such as {"target-file-size-bytes": "536870912"}.
        dry_run: count files and bytes, and write nothing.

    Raises:
        ConfigurationError: there is no such table, or an option is one that this function sets itself.
        NotSupportedError: the table is not encrypted, or the catalog is not one of this project.
    """
    given = {key: str(value) for key, value in (options or {}).items()}
    found = _jvm.run(
        spark, "reencrypt_table", table=table_name(table), options=given, dry_run=bool(dry_run)
    )
    return TableReencryption(**found)
