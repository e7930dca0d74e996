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

import ast
from pkgutil import get_data
from typing import TYPE_CHECKING

from pyspark_iceberg_crypto.jvm.artifacts import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from .columns.orc import OrcKeys as OrcKeys
    from .columns.parquet import ParquetKeys as ParquetKeys
    from .doctor import DoctorReport as DoctorReport
    from .doctor import DoctorStep as DoctorStep
    from .doctor import DoctorTablesReport as DoctorTablesReport
    from .doctor import diagnose as diagnose
    from .doctor import diagnose_tables as diagnose_tables
    from .errors import AccessDeniedError as AccessDeniedError
    from .errors import BadWrappedKeyError as BadWrappedKeyError
    from .errors import CancelledError as CancelledError
    from .errors import ConfigurationError as ConfigurationError
    from .errors import IcebergCryptoError as IcebergCryptoError
    from .errors import JarMissingError as JarMissingError
    from .errors import KeyDisabledError as KeyDisabledError
    from .errors import KeyNotFoundError as KeyNotFoundError
    from .errors import KmsUnavailableError as KmsUnavailableError
    from .errors import LoginFailedError as LoginFailedError
    from .errors import NoSessionError as NoSessionError
    from .errors import NotEncryptedError as NotEncryptedError
    from .errors import NotSupportedError as NotSupportedError
    from .errors import PlaintextFoundError as PlaintextFoundError
    from .errors import SparkConnectError as SparkConnectError
    from .errors import TableNotFoundError as TableNotFoundError
    from .errors import TamperedError as TamperedError
    from .errors import VerificationFailedError as VerificationFailedError
    from .errors import VerificationIncompleteError as VerificationIncompleteError
    from .evidence._evidence import VerifyTablesReport as VerifyTablesReport
    from .jvm._typed import typed_errors as typed_errors
    from .kms import AwsKms as AwsKms
    from .kms import AzureKeyVault as AzureKeyVault
    from .kms import GcpKms as GcpKms
    from .kms import HadoopKms as HadoopKms
    from .kms import KeyInfo as KeyInfo
    from .kms import Keystore as Keystore
    from .kms import Kms as Kms
    from .kms import Pkcs11 as Pkcs11
    from .kms import Vault as Vault
    from .reports._data import FileCount as FileCount
    from .reports._data import Problem as Problem
    from .reports._finding import TableFinding as TableFinding
    from .schemas import report_schema as report_schema
    from .session import configure_spark as configure_spark
    from .settings import jar_path as jar_path
    from .settings import spark_conf as spark_conf
    from .verbs.encryption import DecryptReport as DecryptReport
    from .verbs.encryption import EncryptReport as EncryptReport
    from .verbs.encryption import PurgeReport as PurgeReport
    from .verbs.encryption import decrypt_table as decrypt_table
    from .verbs.encryption import encrypt_table as encrypt_table
    from .verbs.encryption import purge_plaintext as purge_plaintext
    from .verbs.inspection import FileInspection as FileInspection
    from .verbs.inspection import FileKey as FileKey
    from .verbs.inspection import ProtectedColumn as ProtectedColumn
    from .verbs.inspection import inspect_file as inspect_file
    from .verbs.kept_reports import check_report as check_report
    from .verbs.keys import EncryptionKey as EncryptionKey
    from .verbs.keys import KeysReport as KeysReport
    from .verbs.keys import encryption_keys as encryption_keys
    from .verbs.metrics import KmsMetrics as KmsMetrics
    from .verbs.metrics import kms_metrics as kms_metrics
    from .verbs.pruning import PruneReport as PruneReport
    from .verbs.pruning import prune_encryption_keys as prune_encryption_keys
    from .verbs.reencryption import ReencryptReport as ReencryptReport
    from .verbs.reencryption import reencrypt_table as reencrypt_table
    from .verbs.repair import RepairReport as RepairReport
    from .verbs.repair import repair_table as repair_table
    from .verbs.rotation import RotateKekReport as RotateKekReport
    from .verbs.rotation import RotateMasterKeyReport as RotateMasterKeyReport
    from .verbs.rotation import rotate_kek as rotate_kek
    from .verbs.rotation import rotate_master_key as rotate_master_key
    from .verbs.rotation_many import KeyVersionsReport as KeyVersionsReport
    from .verbs.rotation_many import MasterKeyVersions as MasterKeyVersions
    from .verbs.rotation_many import RotateCatalogReport as RotateCatalogReport
    from .verbs.rotation_many import key_versions_in_use as key_versions_in_use
    from .verbs.rotation_many import rotate_catalog as rotate_catalog
    from .verbs.rotation_parquet import RotateParquetReport as RotateParquetReport
    from .verbs.rotation_parquet import rotate_parquet_keys as rotate_parquet_keys
    from .verbs.values import ValueKey as ValueKey
    from .verbs.values import create_value_key as create_value_key
    from .verbs.values import decrypt_value as decrypt_value
    from .verbs.values import drop_value_key as drop_value_key
    from .verbs.values import encrypt_value as encrypt_value
    from .verbs.values import rotate_value_key as rotate_value_key
    from .verbs.values import value_keys as value_keys
    from .verbs.verify import VerifyReport as VerifyReport
    from .verbs.verify import verify_table as verify_table
    from .verbs.verify_many import verify_catalog as verify_catalog
    from .verbs.verify_many import verify_folder as verify_folder
else:
    # Each name is imported with its first use: keys are managed without Spark.
    import lazy_loader

    def _by_module() -> dict[str, list[str]]:
        """Return the names that are imported above by their modules; the package may be in a zip file (``--py-files``).

        Its name is that of no module here, which `from pyspark_iceberg_crypto import _names` would not find then.
        """
        found: dict[str, list[str]] = {}
        for node in ast.walk(ast.parse(get_data(__name__, "__init__.py"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                found.setdefault(node.module, []).extend(alias.name for alias in node.names)
        return found

    __getattr__, __dir__, _exported = lazy_loader.attach(__name__, submod_attrs=_by_module())
    __all__ = sorted([*_exported, "__version__"])
