"""Encrypted tables in Python without Spark and without a JVM.

PyIceberg plans and reads; keys, guards and proof are of this package. docs/python.md is the guide.
"""

from pyspark_iceberg_crypto.reader._open import open_table

__all__ = ["open_table"]
