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

import lazy_loader

from pyspark_iceberg_crypto.jvm.artifacts import VERSION


def _by_module() -> dict[str, list[str]]:
    """Return the names of ``__init__.pyi`` by their modules; the package may be in a zip file (``--py-files``).

    Its name is that of no module here, which `from pyspark_iceberg_crypto import _names` would not find then.
    """
    found: dict[str, list[str]] = {}
    for node in ast.parse(get_data(__name__, "__init__.pyi") or b"").body:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(str(node.module), []).extend(alias.name for alias in node.names)
    return found


# Each name is imported with its first use: keys are managed without Spark.
__getattr__, __dir__, _exported = lazy_loader.attach(__name__, submod_attrs=_by_module())
__all__ = sorted([*_exported, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]

__version__ = VERSION
