"""Azure Key Vault and Managed HSM."""

from pyspark_iceberg_crypto.kms.azure._key_vault import AzureKeyVault

__all__ = ["AzureKeyVault"]
