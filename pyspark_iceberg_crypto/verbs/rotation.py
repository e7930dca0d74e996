"""Other keys for an existing table: another master key or version of it, another KEK."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from rich.console import RenderableType
from rich.text import Text

from pyspark_iceberg_crypto._names import table_name
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._report import Changed, done_shown
from pyspark_iceberg_crypto.reports._text import advice, visible


@dataclass(frozen=True)
class RotateMasterKeyReport(Changed):
    """The result of wrapping a table's KEKs again. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether the table was changed: not by a dry run.
        old_key_id: the table's master key before.
        new_key_id: the one that it has now.
        keks: how many KEKs were wrapped again.
        old_versions: the versions of the master key that wrapped them before, such as "1, 2"; None when the
            wrapped keys do not contain it (AWS, Google, Azure).
        new_versions: the version that wraps them now; None if they do not contain it.
        kms_calls: how many calls of the KMS it took.
        value_keys: how many versions of value keys were wrapped again, in the table that keeps these.
        value_keys_left: those that other master keys wrap, and that stayed as they were, such as "hr (k3)"; None if
            no other key wraps any.
    """

    old_key_id: str
    new_key_id: str
    keks: int
    old_versions: str | None
    new_versions: str | None
    kms_calls: int
    value_keys: int = 0
    value_keys_left: str | None = None

    @property
    def ok(self) -> bool:
        """Whether another key or version may wrap now; False: the KMS has no newer version of the master key."""
        is_same = self.old_key_id == self.new_key_id and self.old_versions == self.new_versions
        return not is_same or self.new_versions is None or self.value_keys > 0


@_terminal.layout.register
def _(found: RotateMasterKeyReport) -> RenderableType:
    if found.ok:
        return done_shown(found)
    return Text(f"! {visible(found.table)}: {advice(found.message)}", "bold yellow")


@dataclass(frozen=True)
class RotateKekReport(Changed):
    """A new KEK of a table. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether the table was changed: not by a dry run.
        key_id: its master key, which wraps the KEK.
        old_kek_id: the KEK that was in use before; None when the table had none.
        new_kek_id: the one that is in use now; None in a dry run.
        rewrapped: how many keys of manifest lists and statistics files were encrypted again.
        removed_keks: how many KEKs the table no longer has.
        kept_keks: how many older ones it still has.
        kms_calls: how many calls of the KMS it took.
    """

    key_id: str
    old_kek_id: str | None
    new_kek_id: str | None
    rewrapped: int
    removed_keks: int
    kept_keks: int
    kms_calls: int


def rotate_master_key(
    spark: SparkSession,
    table: str,
    new_key_id: str | None = None,
    *,
    from_catalog: str | None = None,
    dry_run: bool = False,
) -> RotateMasterKeyReport:
    """Have a table's KEKs wrapped by the newest version of its master key, or by another master key.

    One commit of metadata; no file is rewritten, and all snapshots stay readable. The KMS gets three calls for
    each KEK, most often for one: unwrap, wrap, and unwrap what it wrapped.

    Value keys that the table keeps are wrapped again with its KEKs, for three calls each. Those that other master keys
    wrap keep these, as who may use a master key decides who may decrypt: with `new_key_id` they are left as they are,
    and else their own master keys' newest versions wrap them.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t", or its path.
        new_key_id: another master key of the same KMS. None: the same, and all value keys by their own.
        from_catalog: a catalog of this session that is set up with the KMS that the table has, when its own
            catalog is set up with another one: the table then moves to a key of that.
        dry_run: do everything but the commit, calls of the KMS included.

    Raises:
        TableNotFoundError: there is no such table.
        ConfigurationError: the key id is empty.
        NotSupportedError: the table is not encrypted, or its catalog is not one of this project.
        AccessDeniedError: the catalog or the KMS does not allow the key. Nothing was changed.
        KeyNotFoundError: the KMS does not have the key, or no longer has the old one. Nothing was changed.
        KmsUnavailableError: the KMS does not answer. Nothing was changed.
    """
    if new_key_id is not None and not isinstance(new_key_id, str):
        raise ConfigurationError(f"{new_key_id!r} cannot be a key id", "for example 'sales-2'")
    if from_catalog is not None and (not isinstance(from_catalog, str) or not from_catalog.strip()):
        raise ConfigurationError(
            f"{from_catalog!r} cannot be a catalog's name", "for example 'lake'"
        )
    found = _jvm.run(
        spark,
        "rotate_master_key",
        table=table_name(table),
        new_key_id=new_key_id,
        from_catalog=from_catalog,
        dry_run=bool(dry_run),
    )
    return RotateMasterKeyReport(**found)


def rotate_kek(
    spark: SparkSession, table: str, *, rewrap: bool = False, dry_run: bool = False
) -> RotateKekReport:
    """Give a table a new KEK, which encrypts the keys of all manifest lists from now on.

    One commit of metadata; no file is rewritten, and all snapshots stay readable.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t", or its path.
        rewrap: encrypt the keys of the snapshots that the table has with the new KEK, too. Older KEKs then go
            30 days later. On Hive that is always done, and older KEKs go at once.
        dry_run: do everything but the commit, calls of the KMS included.

    Raises:
        TableNotFoundError: there is no such table.
        NotSupportedError: the table is not encrypted, or the catalog is not one of this project.
        TamperedError: a key does not decrypt. Nothing was changed.
        KmsUnavailableError: the KMS does not answer. Nothing was changed.
        IcebergCryptoError: any other error of the KMS. Nothing was changed.
    """
    found = _jvm.run(
        spark, "rotate_kek", table=table_name(table), rewrap=bool(rewrap), dry_run=bool(dry_run)
    )
    return RotateKekReport(**found)
