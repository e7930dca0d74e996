"""The keys of a table: their ages, and whether the KMS still gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from rich.console import RenderableType

from pyspark_iceberg_crypto._names import table_name
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.reports import _keys, _terminal
from pyspark_iceberg_crypto.reports._data import UNCHECKED
from pyspark_iceberg_crypto.reports._report import Report

DATA_KEY_LENGTH = 16  # Iceberg's default, in bytes


@dataclass(frozen=True)
class EncryptionKey:
    """One key of a table. None of its bytes are here.

    Attributes:
        key_id: its id.
        kind: what it encrypts: master (KEKs), kek (key metadata), value (values of columns), manifest list,
            statistics; other (an entry of another program), or dead (nothing: the next commit removes it).
        encrypted_by: the id of the key that wraps it; None for a master key.
        created_at: when it was made, in ISO 8601 and UTC; only of a KEK and a value key.
        age_days: its age in whole days.
        snapshots: how many snapshots cannot be read without it.
        overdue: whether it is a KEK older than encryption.kek.max-age-days.
        kms_answers: whether the KMS used the key just now (a master key) or unwrapped it (a KEK or a value key).
            None: the KMS was not asked, because the key belongs to another program.
        authenticated_wrapping: whether only users of the master key can wrap with it; not so with RSA.
        problem: what is wrong with it; None when nothing is.
        used_for: the snapshot of a manifest list, or the statistics file.
        key_length: its length in bytes; None if that is not known.
        key_version: the version of its master key that wrapped a KEK or a value key; None for other keys, and where
            the wrapped key does not contain it (AWS, Google, Azure).
    """

    key_id: str
    kind: str
    encrypted_by: str | None
    created_at: str | None
    age_days: int | None
    snapshots: int
    overdue: bool
    kms_answers: bool | None
    authenticated_wrapping: bool | None
    problem: str | None
    used_for: str | None
    key_length: int | None
    key_version: int | None = None


@dataclass(frozen=True)
class KeysReport(Report):
    """The keys of a table, from its metadata and its KMS. It prints as text.

    The keys of manifests, data files and delete files are in the manifests, which are not read.

    Attributes:
        table: the table's full name.
        key_id: its master key; None when someone removed that from its properties.
        data_key_length: the table property encryption.data-key-length, or Iceberg's default, as text: the
            length in bytes of the keys that are made from now on.
        kek_max_age_days: the age from which a KEK is overdue.
        kms: which KMS was asked.
        kms_calls: how many keys it was asked for, one call each.
        kms_problem: why it did not answer; None when it did.
        keys: the keys, in the order of `EncryptionKey.kind`.
    """

    table: str
    key_id: str | None
    data_key_length: str
    kek_max_age_days: int
    kms: str
    kms_calls: int
    kms_problem: str | None
    keys: list[EncryptionKey]

    @property
    def problems(self) -> list[EncryptionKey]:
        """The keys with which something is wrong, and those that are overdue."""
        return [key for key in self.keys if key.problem is not None or key.overdue]

    @property
    def ok(self) -> bool:
        """Whether the KMS answered, and no key has a problem or is overdue."""
        return self.kms_problem is None and not self.problems

    @property
    def exit_code(self) -> int:
        """0 it is ok, 1 a key has a problem or is overdue, 2 the KMS did not answer."""
        return UNCHECKED if self.kms_problem is not None else super().exit_code

    def _repr_html_(self) -> str:
        return _keys.html(self)


@_terminal.layout.register
def _(found: KeysReport) -> RenderableType:
    return _keys.text(found)


def encryption_keys(spark: SparkSession, table: str) -> KeysReport:
    """List the keys of an encrypted table, and ask its KMS for each.

    It reads the table's metadata, and no manifest. The KMS gets one call for each KEK that something needs, and for
    each value key that the table keeps, past the cache; and one for a master key, when it unwraps none of them.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".

    Raises:
        TableNotFoundError: there is no such table.
        NotSupportedError: the table is not encrypted, or the catalog is not one of this project.
        TamperedError: its metadata is refused, and so what it lists is not to be trusted.
    """
    return of(_jvm.run(spark, "encryption_keys", table=table_name(table)))


def of(found: dict[str, Any]) -> KeysReport:
    """Make a report of the JVM's JSON."""
    keys = [EncryptionKey(**row) for row in found.pop("rows")]
    length = str(found.pop("data_key_length") or DATA_KEY_LENGTH)
    return KeysReport(**found, data_key_length=length, keys=keys)
