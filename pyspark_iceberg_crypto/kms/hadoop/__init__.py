"""Hadoop KMS, and Apache Ranger KMS."""

from pyspark_iceberg_crypto.kms.hadoop._hadoop import HadoopKms

__all__ = ["HadoopKms"]
