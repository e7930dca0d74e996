"""Encrypts plaintext tables in place, deletes their plaintext, and decrypts tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto._names import table_name
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.reports._report import Changed
from pyspark_iceberg_crypto.verbs import _progress

_MAX_LONG = 2**63 - 1


@dataclass(frozen=True)
class EncryptReport(Changed):
    """A table that was encrypted in place. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether the table is encrypted now: not by a dry run, nor by a portion that is not the last.
        key_id: its master key.
        refs: how many branches and tags it has.
        files: how many data files these consisted of.
        bytes: the length of these files.
        copied_files: how many of them this call copied, or would copy.
        files_left: how many are not copied yet.
        rows: how many rows main has; None as long as it is not encrypted.
        kms_calls: how many calls of the KMS it takes.
        seconds: how long the rest would take: of a portion at its own rate, of a dry run by a rule of thumb; None
            when the table is encrypted.
        plaintext_metadata: a copy of the metadata that the table had, which leads to its plaintext until that is
            purged; None as long as the table is not encrypted.
        dry_run: whether it was one, which changes nothing.
    """

    key_id: str
    refs: int
    files: int
    bytes: int
    copied_files: int
    files_left: int
    rows: int | None
    kms_calls: int
    seconds: int | None
    plaintext_metadata: str | None
    dry_run: bool

    @property
    def ok(self) -> bool:
        """Whether the table is encrypted. A portion that is not the last is not ok; a dry run is."""
        return self.committed or self.dry_run


@dataclass(frozen=True)
class PurgeReport(Changed):
    """The plaintext of a table that was deleted. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether it was deleted: not by a dry run.
        files: how many files.
        bytes: their length.
        paths: the first 1000 of them.
        outside: in a dry run, folders that are not the table's and in which old metadata names plaintext files, and
            how many.
        outside_paths: these files, up to 100,000.
        left: how many plaintext files stay: in folders to keep, and in former folders of the table where no metadata
            names them.
        left_paths: the first 1000 of them.
        gaps: what of the old metadata cannot be read, so that what it named is not known.
    """

    files: int
    bytes: int
    paths: list[str]
    outside: dict[str, int]
    outside_paths: list[str]
    left: int
    left_paths: list[str]
    gaps: list[str]

    @property
    def ok(self) -> bool:
        """Whether no plaintext is left; of a dry run, whether nothing is outside, and there are no gaps."""
        return not (self.left if self.committed else self.outside or self.gaps)


@dataclass(frozen=True)
class DecryptReport(Changed):
    """A table that was decrypted in place. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: True.
        old_key_id: the master key that it had.
        files: how many data files its branches and tags consisted of.
        bytes: the length of these files.
    """

    old_key_id: str
    files: int
    bytes: int


def encrypt_table(
    spark: SparkSession,
    table: str,
    key_id: str,
    *,
    dry_run: bool = False,
    max_bytes: int | None = None,
    throttle: int | None = None,
    progress: bool | None = None,
) -> EncryptReport:
    """Encrypt a plaintext table in place: one commit, after all of its rows were copied, verified and compared.

    The table keeps its name, UUID, location, schemas, partition specs, properties, branches and tags; it gets format
    version 3. Others read and write it meanwhile. The plaintext stays until `purge_plaintext`. A call after one that
    failed or was killed continues there.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        key_id: the id of a master key in the KMS.
        dry_run: only say what would be done.
        max_bytes: how much this call copies, for a large table in portions. What is left is for the next calls; the
            table is encrypted by the last one, and plaintext until then. None: all of it.
        throttle: how many bytes of the table a second this call copies at most, averaged over a minute. None: as
            fast as the cluster can.
        progress: show progress on stderr. None: when that is a terminal, or in a notebook.

    Raises:
        TableNotFoundError: there is no such table.
        ConfigurationError: the key id is empty, or max_bytes or throttle is not above 0.
        NotSupportedError: the table is encrypted already, or has something that encrypted tables cannot have.
        AccessDeniedError: the catalog or the KMS does not allow the key.
        KeyNotFoundError: the KMS does not have the key.
        KmsUnavailableError: the KMS does not answer.
        IcebergCryptoError: the copy is not as it should be, or the commit was refused. The table is unchanged.
    """
    if not isinstance(key_id, str):
        raise ConfigurationError(f"{key_id!r} cannot be a key id", "for example 'sales'")
    if not _is_limit(max_bytes):
        raise ConfigurationError(f"max_bytes is {max_bytes!r}", "give a whole number above 0")
    if not _is_limit(throttle):
        raise ConfigurationError(f"throttle is {throttle!r}", "give a whole number above 0")
    name = table_name(table)
    given = {
        "table": name,
        "key_id": key_id,
        "max_bytes": max_bytes and min(max_bytes, _MAX_LONG),
        "throttle": throttle and min(throttle, _MAX_LONG),
        "dry_run": bool(dry_run),
    }
    return EncryptReport(**_progress.run(spark, name, progress, "encrypt_table", **given))


def _is_limit(value: int | None) -> bool:
    return value is None or (isinstance(value, int) and value > 0)


def purge_plaintext(
    spark: SparkSession,
    table: str,
    *,
    dry_run: bool = False,
    folders: Sequence[str] = (),
    keep: Sequence[str] = (),
    accept_missing: bool = False,
    progress: bool | None = None,
) -> PurgeReport:
    """Delete the files that a table had before `encrypt_table`, and prove that nothing in plaintext is left.

    It deletes what the kept metadata reaches, is plaintext by its first bytes, and is reached by no snapshot of the
    table; first data, then what names it. The earlier history is then gone. A call after one that failed or was
    killed continues there: where the old files are is forgotten last, after the proof.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        dry_run: only list the files.
        folders: more folders than the table's own in which it deletes what the old metadata names. Give those only
            where the files that a dry run lists are this table's alone.
        keep: folders in which it deletes nothing, because others need the files, such as those that `add_files` added.
        accept_missing: finish even if metadata that named old files is missing or damaged. Other plaintext in the
            table's folders is still found.
        progress: show progress on stderr. None: when that is a terminal, or in a notebook.

    Raises:
        TableNotFoundError: there is no such table.
        ConfigurationError: a folder is not a table's.
        NotSupportedError: the table was not encrypted in place, its plaintext was purged, or the old metadata names
            files in folders that are neither its own nor given. Nothing was deleted.
        IcebergCryptoError: the table does not verify, and nothing was deleted; or it is not finished: files could not
            be deleted or read, or its folders hold other plaintext. Another call continues.
    """
    name = table_name(table)
    for given in (folders, keep):
        if isinstance(given, str) or not all(isinstance(folder, str) for folder in given):
            raise ConfigurationError(
                f"{given!r} is not a list of folders", "for example ['s3://lake/db/t/old']"
            )
    options = {
        "dry_run": bool(dry_run),
        "folders": list(folders),
        "keep": list(keep),
        "accept_missing": bool(accept_missing),
    }
    found = _progress.run(spark, name, progress, "purge_plaintext", table=name, **options)
    return PurgeReport(**found)


def decrypt_table(
    spark: SparkSession,
    table: str,
    *,
    confirm: bool = False,
    progress: bool | None = None,
) -> DecryptReport:
    """Decrypt an encrypted table in place: the reverse of `encrypt_table`.

    One commit, after all rows of its branches and tags were copied and compared. The table stays at format version 3.
    Its earlier history is lost; the encrypted files stay until remove_orphan_files deletes them. A call that
    fails deletes what it wrote, or its error says what may be left; after a kill, plaintext files of it may be left.
    `verify_table` with strays finds them while the table is encrypted.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        confirm: must be True, because the rows become plaintext.
        progress: show progress on stderr. None: when that is a terminal, or in a notebook.

    Raises:
        TableNotFoundError: there is no such table.
        ConfigurationError: it was not confirmed, or the catalog has encrypted tables only.
        NotEncryptedError: the table is not encrypted.
        NotSupportedError: its plaintext from before `encrypt_table` was not purged.
        IcebergCryptoError: the copy is not as it should be, or the commit was refused. The table is unchanged, unless
            the hint says that the commit may have been made.
    """
    name = table_name(table)
    given = {"table": name, "confirm": bool(confirm)}
    return DecryptReport(**_progress.run(spark, name, progress, "decrypt_table", **given))
