"""HashiCorp Vault's transit engine."""

from pyspark_iceberg_crypto.kms.vault._vault import Vault

__all__ = ["Vault"]
