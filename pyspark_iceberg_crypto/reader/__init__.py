"""Encrypted tables in Python without Spark and without a JVM.

PyIceberg plans, reads and writes; keys, guards and proof are of this package. docs/python.md is the guide.
"""

from pyspark_iceberg_crypto.reader._open import create_table, open_table, table_readers
from pyspark_iceberg_crypto.reader.proof._api import (
    check_report,
    decrypt_file,
    inspect_file,
    sign_report,
    verify_table,
)

__all__ = [
    "check_report",
    "create_table",
    "decrypt_file",
    "inspect_file",
    "open_table",
    "sign_report",
    "table_readers",
    "verify_table",
]
