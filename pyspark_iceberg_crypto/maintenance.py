"""What keeps an encrypted table as it should be: no keys that nothing needs."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import _jvm
from pyspark_iceberg_crypto._changes import Changed, table_name

__all__ = ["KeyPruning", "prune_encryption_keys"]


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
    found = json.loads(_jvm.call(spark, "pruneEncryptionKeys", table_name(table), bool(dry_run)))
    return KeyPruning(**found)
