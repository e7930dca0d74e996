"""Apache Iceberg table encryption on any catalog, from PySpark.

>>> from pyspark.sql import SparkSession
>>> from pyspark_iceberg_crypto import Keystore, configure_spark, verify_table
>>> keys = Keystore.create("keys.p12", keys=["k1"], password_env="KEYSTORE_PASSWORD")
>>> spark = configure_spark(
...     SparkSession.builder, catalog="lake", type="rest", uri="http://localhost:8181", kms=keys
... ).getOrCreate()
>>> spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
>>> spark.sql("CREATE TABLE lake.db.t (id INT) TBLPROPERTIES ('encryption.key-id'='k1')")
>>> print(verify_table(spark, "lake.db.t"))
"""

from importlib.metadata import version

from pyspark_iceberg_crypto._jvm import typed_errors
from pyspark_iceberg_crypto.encryption import (
    DecryptedTable,
    EncryptedTable,
    PurgedPlaintext,
    decrypt_table,
    encrypt_table,
    purge_plaintext,
)
from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    JarMissingError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NoSessionError,
    NotEncryptedError,
    NotSupportedError,
    PlaintextFoundError,
    SparkConnectError,
    TamperedError,
    VerificationFailedError,
    VerificationIncompleteError,
)
from pyspark_iceberg_crypto.evidence._check import check_report, report_schema
from pyspark_iceberg_crypto.evidence._evidence import TablesReport
from pyspark_iceberg_crypto.inspection import FileInspection, FileKey, inspect_file
from pyspark_iceberg_crypto.keys import EncryptionKey, KeysReport, encryption_keys
from pyspark_iceberg_crypto.kms import (
    AwsKms,
    AzureKeyVault,
    GcpKms,
    KeyInfo,
    Keystore,
    Kms,
    KmsMetrics,
    Pkcs11,
    Vault,
    kms_metrics,
)
from pyspark_iceberg_crypto.maintenance import (
    KeyPruning,
    TableReencryption,
    prune_encryption_keys,
    reencrypt_table,
)
from pyspark_iceberg_crypto.many import (
    verify_catalog,
    verify_folder,
)
from pyspark_iceberg_crypto.repair import RepairFinding, RepairReport, repair_table
from pyspark_iceberg_crypto.rotation import (
    KekRotation,
    MasterKeyRotation,
    rotate_kek,
    rotate_master_key,
)
from pyspark_iceberg_crypto.rotation_many import (
    KeyVersionsReport,
    MasterKeyVersions,
    RotationsReport,
    key_versions_in_use,
    rotate_catalog,
)
from pyspark_iceberg_crypto.session import configure_spark
from pyspark_iceberg_crypto.verify import (
    FileCount,
    Problem,
    VerifyReport,
    verify_table,
)

__version__ = version("pyspark-iceberg-crypto")

__all__ = [
    "AccessDeniedError",
    "AwsKms",
    "AzureKeyVault",
    "BadWrappedKeyError",
    "ConfigurationError",
    "DecryptedTable",
    "EncryptedTable",
    "EncryptionKey",
    "FileCount",
    "FileInspection",
    "FileKey",
    "GcpKms",
    "IcebergCryptoError",
    "JarMissingError",
    "KekRotation",
    "KeyDisabledError",
    "KeyInfo",
    "KeyNotFoundError",
    "KeyPruning",
    "KeyVersionsReport",
    "KeysReport",
    "Keystore",
    "Kms",
    "KmsMetrics",
    "KmsUnavailableError",
    "LoginFailedError",
    "MasterKeyRotation",
    "MasterKeyVersions",
    "NoSessionError",
    "NotEncryptedError",
    "NotSupportedError",
    "Pkcs11",
    "PlaintextFoundError",
    "Problem",
    "PurgedPlaintext",
    "RepairFinding",
    "RepairReport",
    "RotationsReport",
    "SparkConnectError",
    "TableReencryption",
    "TablesReport",
    "TamperedError",
    "Vault",
    "VerificationFailedError",
    "VerificationIncompleteError",
    "VerifyReport",
    "__version__",
    "check_report",
    "configure_spark",
    "decrypt_table",
    "encrypt_table",
    "encryption_keys",
    "inspect_file",
    "key_versions_in_use",
    "kms_metrics",
    "prune_encryption_keys",
    "purge_plaintext",
    "reencrypt_table",
    "repair_table",
    "report_schema",
    "rotate_catalog",
    "rotate_kek",
    "rotate_master_key",
    "typed_errors",
    "verify_catalog",
    "verify_folder",
    "verify_table",
]
