"""Columns whose values are encrypted: the SQL functions of this project's catalogs, for DataFrames.

They are expressions alone, so that they work over Spark Connect, too. The keys are made by SQL, with
``CALL lake.system.create_value_key(name => 'customers', key_id => 'k1')``.

>>> people.withColumn("ssn", encrypt_value("ssn", "customers", catalog="lake"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_iceberg_crypto._names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column


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
        deterministic: encrypt equal values alike, so that they can be compared, joined and grouped. Who sees the
            column then sees which values are equal, and how often each is there.

    Raises:
        pyspark.errors.AnalysisException: the types do not fit. Errors of keys come when the statement runs.
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
