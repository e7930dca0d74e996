from .columns.orc import OrcKeys
from .columns.parquet import ParquetKeys
from .errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    CancelledError,
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
    TableNotFoundError,
    TamperedError,
    VerificationFailedError,
    VerificationIncompleteError,
)
from .evidence._evidence import TablesReport
from .jvm._typed import typed_errors
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
from .schemas import report_schema
from .session import configure_spark
from .settings import jar_path, spark_conf
from .verbs.encryption import (
    DecryptReport,
    EncryptReport,
    PurgeReport,
    decrypt_table,
    encrypt_table,
    purge_plaintext,
)
from .verbs.inspection import FileInspection, FileKey, ProtectedColumn, inspect_file
from .verbs.kept_reports import check_report
from .verbs.keys import EncryptionKey, KeysReport, encryption_keys
from .verbs.metrics import KmsMetrics, kms_metrics
from .verbs.pruning import PruneReport, prune_encryption_keys
from .verbs.reencryption import ReencryptReport, reencrypt_table
from .verbs.repair import RepairFinding, RepairReport, repair_table
from .verbs.rotation import (
    RotateKekReport,
    RotateMasterKeyReport,
    rotate_kek,
    rotate_master_key,
)
from .verbs.rotation_many import (
    KeyVersionsReport,
    MasterKeyVersions,
    RotateCatalogReport,
    key_versions_in_use,
    rotate_catalog,
)
from .verbs.rotation_parquet import RotateParquetReport, rotate_parquet_keys
from .verbs.values import (
    ValueKey,
    create_value_key,
    decrypt_value,
    drop_value_key,
    encrypt_value,
    rotate_value_key,
    value_keys,
)
from .verbs.verify import (
    FileCount,
    Problem,
    VerifyReport,
    verify_table,
)
from .verbs.verify_many import (
    verify_catalog,
    verify_folder,
)

__version__: str

__all__ = [
    "AccessDeniedError",
    "AwsKms",
    "AzureKeyVault",
    "BadWrappedKeyError",
    "CancelledError",
    "ConfigurationError",
    "DecryptReport",
    "EncryptReport",
    "EncryptionKey",
    "FileCount",
    "FileInspection",
    "FileKey",
    "GcpKms",
    "HadoopKms",
    "IcebergCryptoError",
    "JarMissingError",
    "KeyDisabledError",
    "KeyInfo",
    "KeyNotFoundError",
    "KeyVersionsReport",
    "KeysReport",
    "Keystore",
    "Kms",
    "KmsMetrics",
    "KmsUnavailableError",
    "LoginFailedError",
    "MasterKeyVersions",
    "NoSessionError",
    "NotEncryptedError",
    "NotSupportedError",
    "OrcKeys",
    "ParquetKeys",
    "Pkcs11",
    "PlaintextFoundError",
    "Problem",
    "ProtectedColumn",
    "PruneReport",
    "PurgeReport",
    "ReencryptReport",
    "RepairFinding",
    "RepairReport",
    "RotateCatalogReport",
    "RotateKekReport",
    "RotateMasterKeyReport",
    "RotateParquetReport",
    "SparkConnectError",
    "TableNotFoundError",
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
