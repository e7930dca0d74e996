"""The key management systems (KMSs) that can hold a catalog's master keys.

Importing this needs neither Spark nor a KMS's client library: each is loaded when a method first needs it.
"""

from pyspark_iceberg_crypto.kms._base import KeyInfo, Kms, KmsSettings
from pyspark_iceberg_crypto.kms._cached import CachedKms, KmsCalls, Retry
from pyspark_iceberg_crypto.kms._client import KeyManagementClient, KmsClient
from pyspark_iceberg_crypto.kms._properties import from_properties
from pyspark_iceberg_crypto.kms.aws import AwsKms
from pyspark_iceberg_crypto.kms.azure import AzureKeyVault
from pyspark_iceberg_crypto.kms.gcp import GcpKms
from pyspark_iceberg_crypto.kms.hadoop import HadoopKms
from pyspark_iceberg_crypto.kms.keystore import Keystore
from pyspark_iceberg_crypto.kms.pkcs11 import Pkcs11
from pyspark_iceberg_crypto.kms.vault import Vault

__all__ = [
    "BY_TYPE",
    "AwsKms",
    "AzureKeyVault",
    "CachedKms",
    "GcpKms",
    "HadoopKms",
    "KeyInfo",
    "KeyManagementClient",
    "Keystore",
    "Kms",
    "KmsCalls",
    "KmsClient",
    "KmsSettings",
    "Pkcs11",
    "Retry",
    "Vault",
    "from_properties",
]

# The classes by their ``encryption.kms-type``.
BY_TYPE: dict[str, type[Kms]] = {
    "aws": AwsKms,
    "azure": AzureKeyVault,
    "gcp": GcpKms,
    "hadoop": HadoopKms,
    "keystore": Keystore,
    "pkcs11": Pkcs11,
    "vault": Vault,
}
