"""AWS KMS."""

from pyspark_iceberg_crypto.kms.aws._aws import AwsKms

__all__ = ["AwsKms"]
