"""The demonstration: real data, encrypted, proven, read again, and refused without the key."""

from pyspark_iceberg_crypto.demo.story import run

__all__ = ["run"]
