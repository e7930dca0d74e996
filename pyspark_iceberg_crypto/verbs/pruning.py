"""Keys that nothing needs, removed from a table's metadata."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto._names import table_name
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports._report import Changed


@dataclass(frozen=True)
class PruneReport(Changed):
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


def prune_encryption_keys(spark: SparkSession, table: str, *, dry_run: bool = False) -> PruneReport:
    """Remove the keys that nothing needs from a table's metadata.

    Commits of this project's catalogs do so automatically; this is for tables that grew under stock Iceberg.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        dry_run: do everything but the commit.

    Raises:
        TableNotFoundError: there is no such table.
        NotSupportedError: the table is not encrypted, or the catalog is not one of this project.
    """
    found = _jvm.run(spark, "prune_encryption_keys", table=table_name(table), dry_run=bool(dry_run))
    return PruneReport(**found)
