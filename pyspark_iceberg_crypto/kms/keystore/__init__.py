"""A PKCS12 file of master keys."""

from pyspark_iceberg_crypto.kms.keystore._keystore import Keystore

__all__ = ["Keystore"]
