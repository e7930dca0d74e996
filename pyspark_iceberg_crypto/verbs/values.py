"""Columns whose values are encrypted: SQL functions of this project's catalogs, for DataFrames, and their keys.

The functions are expressions, and the keys are made by procedures, so that all works over Spark Connect, too.

>>> create_value_key(spark, "lake", "customers", "k1")
>>> people.withColumn("ssn", encrypt_value("ssn", "customers", catalog="lake"))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_iceberg_crypto._names import quoted
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.jvm import _connect

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, SparkSession


def encrypt_value(
    column: Column | str,
    key: Column | str,
    *,
    catalog: str,
    context: Column | str | None = None,
    deterministic: bool = False,
) -> Column:
    """Encrypt the values of a column: a string becomes a string, binary becomes binary, NULL stays NULL.

    Args:
        column: a column of type string or binary, or its name.
        key: the name of a value key, or a column of names.
        catalog: the catalog that has the value key.
        context: what the values are for: a column, or text such as "db.customers.ssn". They are decrypted with the
            same context only.
        deterministic: encrypt equal values alike, so that they can be compared, joined and grouped. Anyone who sees the
            column then sees which values are equal, and how often each is there.

    Raises:
        pyspark.errors.AnalysisException: the types do not fit. A key's name that does not exist is an error here, too,
            if it is text; other errors of keys come when the statement runs.
    """
    name = "encrypt_value_deterministic" if deterministic else "encrypt_value"
    return _call(catalog, name, column, key, context)


def decrypt_value(
    column: Column | str,
    key: Column | str,
    *,
    catalog: str,
    context: Column | str | None = None,
    errors: bool = True,
) -> Column:
    """Decrypt the values of a column that `encrypt_value` encrypted.

    Args:
        column: the column, or its name.
        key: as for `encrypt_value`.
        catalog: as for `encrypt_value`.
        context: as for `encrypt_value`.
        errors: False gives NULL for a value that cannot be decrypted, and for all if the key may not be used.
    """
    name = "decrypt_value" if errors else "try_decrypt_value"
    return _call(catalog, name, column, key, context)


def _call(
    catalog: str, name: str, column: Column | str, key: Column | str, context: Column | str | None
) -> Column:
    from pyspark.sql.functions import (  # the package is imported without Spark, too
        call_function,
        lit,
    )

    more = [] if context is None else [lit(context)]
    return call_function(f"{quoted(catalog)}.system.{name}", column, lit(key), *more)


@dataclass(frozen=True)
class ValueKey:
    """One version of a value key. None of its bytes are here.

    Attributes:
        name: the key's name.
        version: the version, eight hexadecimal digits. The newest one encrypts.
        master_key_id: the master key that wraps it.
        created_at: when it was made, as the session shows times.
    """

    name: str
    version: str
    master_key_id: str
    created_at: datetime


def create_value_key(spark: SparkSession, catalog: str, name: str, key_id: str) -> ValueKey:
    """Make a value key, wrapped by a master key.

    Args:
        spark: a session that knows the catalog, which must be one of this project.
        catalog: the catalog's name.
        name: the key's name.
        key_id: the master key that wraps it. The first value key of a catalog makes the table that keeps them,
            encrypted with this master key.

    Raises:
        ConfigurationError: there is a value key of this name, or it is no name.
        KeyNotFoundError: the KMS does not have the master key.
        AccessDeniedError: the catalog or the KMS does not allow it.
    """
    (made,) = _keys(spark, catalog, "create_value_key", name=name, key_id=key_id)
    return made


def value_keys(spark: SparkSession, catalog: str) -> list[ValueKey]:
    """List the value keys of a catalog: each version, by name and age."""
    return _keys(spark, catalog, "value_keys")


def rotate_value_key(
    spark: SparkSession,
    catalog: str,
    name: str,
    *,
    new_key_id: str | None = None,
    new_version: bool = False,
) -> list[ValueKey]:
    """Have a value key wrapped again, or add a version to it.

    Args:
        spark: a session that knows the catalog.
        catalog: the catalog's name.
        name: the value key.
        new_key_id: another master key. None: the same, in its newest version.
        new_version: add a version, which encrypts from now on; older values stay readable, with their versions.

    Returns:
        The versions that were wrapped, or the one that was added.

    Raises:
        KeyNotFoundError: there is no such value key, or no such master key.
        AccessDeniedError: the catalog or the KMS does not allow a master key.
    """
    given = {"name": name, "new_key_id": new_key_id, "new_version": bool(new_version)}
    return _keys(spark, catalog, "rotate_value_key", **given)


def drop_value_key(
    spark: SparkSession, catalog: str, name: str, version: str, *, confirm: bool = False
) -> list[ValueKey]:
    """Drop an older version of a value key: nobody can decrypt what it encrypted any more.

    Encrypt all columns with a newer version before. Older metadata files of the table of keys have the version still,
    wrapped.

    Args:
        spark: a session that knows the catalog.
        catalog: the catalog's name.
        name: the value key.
        version: the version, as `value_keys` gives it; not the newest one.
        confirm: True says that values which it encrypted may be lost. Without it, the error says how to look for
            them.

    Returns:
        The versions that are left.

    Raises:
        ConfigurationError: it was not confirmed. Nothing was dropped.
        NotSupportedError: the version is the newest one. Nothing was dropped.
        KeyNotFoundError: there is no such value key or version.
    """
    given = {"name": name, "version": version, "confirm": bool(confirm)}
    return _keys(spark, catalog, "drop_value_key", **given)


def _keys(spark: SparkSession, catalog: str, procedure: str, **given: Any) -> list[ValueKey]:
    for argument, value in {"catalog": catalog, **given}.items():
        if isinstance(value, bool) or (value is None and argument == "new_key_id"):
            continue
        if not isinstance(value, str) or not value.strip():
            raise ConfigurationError(f"{argument}={value!r} of {procedure}", "give a name, as text")
    return [ValueKey(**row) for row in _connect.rows(spark, catalog, procedure, given)]
