"""A hardware security module, by PKCS#11."""

from pyspark_iceberg_crypto.kms.pkcs11._pkcs11 import Pkcs11

__all__ = ["Pkcs11"]
