"""Other keys for a table that exists: another master key or version of it, another KEK."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto import _jvm
from pyspark_iceberg_crypto._changes import Changed, table_name
from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    NotEncryptedError,
)
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._text import plural, visible

__all__ = [
    "KekRotation",
    "MasterKeyRotation",
    "RotationsReport",
    "rotate_catalog",
    "rotate_kek",
    "rotate_master_key",
]


@dataclass(frozen=True)
class MasterKeyRotation(Changed):
    """What it took to have a table's KEKs wrapped anew. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether the table was changed: not by a dry run.
        old_key_id: the table's master key before.
        new_key_id: the one that it has now.
        keks: how many KEKs were wrapped anew.
        old_versions: the versions of the master key that wrapped them before, such as "1, 2"; None when the
            wrapped keys do not tell (AWS, Google, Azure).
        new_versions: the version that wraps them now; None when they do not tell.
        kms_calls: how many calls of the KMS it took.
    """

    old_key_id: str
    new_key_id: str
    keks: int
    old_versions: str | None
    new_versions: str | None
    kms_calls: int


@dataclass(frozen=True)
class KekRotation(Changed):
    """A new KEK of a table. It prints as text.

    Attributes:
        table: the table's full name.
        message: what was done, in a sentence.
        committed: whether the table was changed: not by a dry run.
        key_id: its master key, which wraps the KEK.
        old_kek_id: the KEK that was in use before; None when the table had none.
        new_kek_id: the one that is in use now; None in a dry run.
        rewrapped: how many keys of manifest lists and statistics files were encrypted anew.
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
    spark: SparkSession, table: str, new_key_id: str | None = None, *, dry_run: bool = False
) -> MasterKeyRotation:
    """Have a table's KEKs wrapped by the newest version of its master key, or by another master key.

    One commit of metadata; no file is rewritten, and all snapshots stay readable. The KMS gets three calls for
    each KEK, most often for one: unwrap, wrap, and unwrap what it wrapped.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        new_key_id: another master key of the same KMS. None: the same.
        dry_run: do everything but the commit, calls of the KMS included.

    Raises:
        ConfigurationError: there is no such table, or the key id is empty.
        NotSupportedError: the table is not encrypted, or its catalog is not one of this project.
        AccessDeniedError: the catalog or the KMS does not allow the key. Nothing was changed.
        KeyNotFoundError: the KMS does not have the key, or no longer has the old one. Nothing was changed.
        KmsUnavailableError: the KMS does not answer. Nothing was changed.
    """
    if new_key_id is not None and not isinstance(new_key_id, str):
        raise ConfigurationError(f"{new_key_id!r} cannot be a key id", "for example 'sales-2'")
    found = json.loads(
        _jvm.call(spark, "rotateMasterKey", table_name(table), new_key_id, bool(dry_run))
    )
    return MasterKeyRotation(**found)


def rotate_kek(
    spark: SparkSession, table: str, *, rewrap: bool = False, dry_run: bool = False
) -> KekRotation:
    """Give a table a new KEK, which encrypts the keys of all manifest lists from now on.

    One commit of metadata; no file is rewritten, and all snapshots stay readable.

    Args:
        spark: a session that knows the table's catalog, which must be one of this project.
        table: the table's name, such as "lake.db.t".
        rewrap: encrypt the keys of the snapshots that the table has with the new KEK, too, and remove the older
            KEKs. On Hive that is always done, and on REST older KEKs go 30 days later.
        dry_run: do everything but the commit, calls of the KMS included.

    Raises:
        ConfigurationError: there is no such table.
        NotSupportedError: the table is not encrypted, or the catalog is not one of this project.
        TamperedError: a key does not decrypt. Nothing was changed.
        KmsUnavailableError: the KMS does not answer. Nothing was changed.
        IcebergCryptoError: any other error of the KMS. Nothing was changed.
    """
    found = json.loads(
        _jvm.call(spark, "rotateKek", table_name(table), bool(rewrap), bool(dry_run))
    )
    return KekRotation(**found)


@dataclass(frozen=True)
class RotationsReport(_terminal.Shown):
    """What a rotation of many tables did, and what is left. It prints as text.

    Attributes:
        target: what was asked for, such as "lake.db".
        done: a rotation for each table that was rotated.
        left: the tables and namespaces that were not, each with table, problem and hint.
        skipped: views, and tables that are not encrypted.
    """

    target: str
    done: list[MasterKeyRotation | KekRotation]
    left: list[dict[str, str]]
    skipped: list[str]

    @property
    def ok(self) -> bool:
        """Whether no encrypted table is left."""
        return not self.left

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {"ok": self.ok, **asdict(self)}


@_terminal.layout.register
def _(found: RotationsReport) -> RenderableType:
    parts: list[RenderableType] = [_terminal.layout(one) for one in found.done]
    for one in found.left:
        hint = f"\n  {visible(one['hint'])}" if one["hint"] else ""
        parts.append(Text(f"✗ {visible(one['table'])}: {visible(one['problem'])}{hint}", "red"))
    counts = (
        f"{plural(len(found.done), 'table')}, {len(found.left)} left, {len(found.skipped)} skipped"
    )
    parts.append(Text(f"{visible(found.target)}: {counts}", "bold" if found.ok else "bold red"))
    return Group(*parts)


def rotate_catalog(
    spark: SparkSession,
    name: str,
    new_key_id: str | None = None,
    *,
    kek: bool = False,
    rewrap: bool = False,
    dry_run: bool = False,
    threads: int = 8,
) -> RotationsReport:
    """Rotate each encrypted table of a catalog, or of a namespace and those within it, several at once.

    A table that cannot be rotated does not stop the rest; the report lists it as left. To go on after a crash, run
    it again: a second rotation of a table does no harm.

    Args:
        spark: a session that knows the catalog, which must be one of this project.
        name: a catalog ("lake") or a namespace ("lake.db" or "lake.db.*").
        new_key_id: see `rotate_master_key`.
        kek: make a new KEK for each table, see `rotate_kek`; the master key stays.
        rewrap: see `rotate_kek`.
        dry_run: see there.
        threads: how many tables are rotated at once.

    Raises:
        ConfigurationError: an argument is wrong, or there is no such catalog or namespace.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"{name!r} cannot be a catalog's name", "for example 'lake'")
    if (kek and new_key_id is not None) or (rewrap and not kek):
        raise ConfigurationError(
            "kek, or new_key_id without rewrap: these are two rotations", "call it for one of them"
        )
    rotate = (
        partial(rotate_kek, rewrap=rewrap, dry_run=dry_run)
        if kek
        else partial(rotate_master_key, new_key_id=new_key_id, dry_run=dry_run)
    )
    report = RotationsReport(name, [], [], [])
    tables: list[str] = []
    for one in json.loads(_jvm.call(spark, "listTables", name)):
        if one["view"]:
            report.skipped.append(one["name"])
        elif one["failure"]:
            report.left.append(_left(one["name"], one["failure"], one["hint"]))
        else:
            tables.append(one["name"])
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for table, result in zip(
            tables, pool.map(partial(_one, spark, rotate), tables), strict=True
        ):
            if result is None:
                report.skipped.append(table)
            elif isinstance(result, dict):
                report.left.append(result)
            else:
                report.done.append(result)
    return report


def _one(
    spark: SparkSession, rotate: Any, table: str
) -> MasterKeyRotation | KekRotation | dict[str, str] | None:
    """Rotate a table, or say why that was not done; None: it is not encrypted."""
    try:
        done: MasterKeyRotation | KekRotation = rotate(spark, table)
    except NotEncryptedError:
        return None
    except IcebergCryptoError as error:
        return _left(table, error.message, error.hint)
    except _jvm.UNTYPED as error:
        return _left(table, _jvm.first_line(error), "")
    return done


def _left(table: str, problem: str, hint: str | None) -> dict[str, str]:
    return {"table": table, "problem": problem, "hint": hint or ""}
