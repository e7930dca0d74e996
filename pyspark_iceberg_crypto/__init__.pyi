from ._typed import typed_errors
from .encryption import (
    DecryptedTable,
    EncryptedTable,
    PurgedPlaintext,
    decrypt_table,
    encrypt_table,
    purge_plaintext,
)
from .errors import (
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
from .evidence._check import check_report, report_schema
from .evidence._evidence import TablesReport
from .inspection import FileInspection, FileKey, ProtectedColumn, inspect_file
from .keys import EncryptionKey, KeysReport, encryption_keys
from .kms import (
    AwsKms,
    AzureKeyVault,
    GcpKms,
    HadoopKms,
    KeyInfo,
    Keystore,
    Kms,
    Pkcs11,
    Vault,
)
from .kms._metrics import KmsMetrics, kms_metrics
from .maintenance import (
    KeyPruning,
    TableReencryption,
    prune_encryption_keys,
    reencrypt_table,
)
from .many import (
    verify_catalog,
    verify_folder,
)
from .orc import OrcKeys
from .parquet import ParquetKeyRotation, ParquetKeys, rotate_parquet_keys
from .repair import RepairFinding, RepairReport, repair_table
from .rotation import (
    KekRotation,
    MasterKeyRotation,
    rotate_kek,
    rotate_master_key,
)
from .rotation_many import (
    KeyVersionsReport,
    MasterKeyVersions,
    RotationsReport,
    key_versions_in_use,
    rotate_catalog,
)
from .session import configure_spark
from .settings import jar_path, spark_conf
from .values import (
    ValueKey,
    create_value_key,
    decrypt_value,
    drop_value_key,
    encrypt_value,
    rotate_value_key,
    value_keys,
)
from .verify import (
    FileCount,
    Problem,
    VerifyReport,
    verify_table,
)

__version__: str

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
    "HadoopKms",
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
    "OrcKeys",
    "ParquetKeyRotation",
    "ParquetKeys",
    "Pkcs11",
    "PlaintextFoundError",
    "Problem",
    "ProtectedColumn",
    "PurgedPlaintext",
    "RepairFinding",
    "RepairReport",
    "RotationsReport",
    "SparkConnectError",
    "TableReencryption",
    "TablesReport",
    "TamperedError",
    "ValueKey",
    "Vault",
    "VerificationFailedError",
    "VerificationIncompleteError",
    "VerifyReport",
    "__version__",
    "check_report",
    "configure_spark",
    "create_value_key",
    "decrypt_table",
    "decrypt_value",
    "drop_value_key",
    "encrypt_table",
    "encrypt_value",
    "encryption_keys",
    "inspect_file",
    "jar_path",
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
    "rotate_parquet_keys",
    "rotate_value_key",
    "spark_conf",
    "typed_errors",
    "value_keys",
    "verify_catalog",
    "verify_folder",
    "verify_table",
]
