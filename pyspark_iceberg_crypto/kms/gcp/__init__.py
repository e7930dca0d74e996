"""Google Cloud KMS."""

from pyspark_iceberg_crypto.kms.gcp._gcp import GcpKms

__all__ = ["GcpKms"]
