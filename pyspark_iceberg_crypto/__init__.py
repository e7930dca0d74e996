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

import lazy_loader

# The names are in __init__.pyi. Each is imported with its first use: keys are managed without Spark.
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*_names, "__version__"])

__version__ = version("pyspark-iceberg-crypto")
