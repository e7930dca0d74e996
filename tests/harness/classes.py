"""The Java classes that tests name: only here, so that one that moves is one line."""

CATALOG = "io.icebergcrypto.catalog.EncryptedCatalog"
SPARK_CATALOG = "io.icebergcrypto.spark.EncryptedSparkCatalog"
SESSION_CATALOG = "io.icebergcrypto.spark.EncryptedSessionCatalog"
PARQUET_WRITES = "io.icebergcrypto.spark.parquet.ParquetWrites"
ORC_CHECKS = "io.icebergcrypto.spark.orc.OrcChecks"

KMS_CLIENTS = "io.icebergcrypto.kms.KmsClients"
CACHING_KMS_CLIENT = "io.icebergcrypto.kms.CachingKmsClient"
BOUND_KMS_CLIENT = "io.icebergcrypto.kms.BoundKmsClient"
IMPLEMENTATIONS = {
    "keystore": "io.icebergcrypto.kms.KeystoreKmsClient",
    "vault": "io.icebergcrypto.kms.VaultKmsClient",
    "aws": "io.icebergcrypto.kms.AwsKmsClient",
    "gcp": "io.icebergcrypto.kms.GcpKmsClient",
    "azure": "io.icebergcrypto.kms.AzureKmsClient",
    "hadoop": "io.icebergcrypto.kms.HadoopKmsClient",
    "pkcs11": "io.icebergcrypto.kms.Pkcs11KmsClient",
}
"""The client of each encryption.kms-type."""
