"""Create an encrypted table and verify it, with the Hive metastore embedded in Spark.

In Spark 3.5 that metastore needs locks but has no tables for them, so there the example uses a Hadoop catalog.

All files are in a temporary folder, which is removed at the end:

    python examples/quickstart.py
"""

import secrets
import tempfile
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import Keystore, configure_spark, inspect_file, verify_table


def start_spark(folder: Path, keys: Keystore) -> SparkSession:
    """Start Spark with the catalog `lake`, on a Hive metastore in a Derby database in the folder."""
    catalog_type = "hadoop" if pyspark.__version__.startswith("3.") else "hive"
    builder = SparkSession.builder.appName("quickstart").master("local[2]")
    settings = {
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName="
        f"{folder / 'metastore'};create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.datanucleus.connectionPoolingType": "HikariCP",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    }
    for key, value in settings.items():
        builder.config(key, value)
    warehouse = str(folder / "warehouse")
    configure_spark(builder, "lake", type=catalog_type, warehouse=warehouse, kms=keys)
    return builder.getOrCreate()


def main() -> None:
    """Create keys and a table, write, read, verify, and inspect one file."""
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-quickstart-") as name:
        folder = Path(name)
        password = folder / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24) + "\n")
        keys = Keystore.create(folder / "keys.p12", keys=["sales"], password_file=password)

        spark = start_spark(folder, keys)
        keys.check(spark, "lake")
        spark.sql("CREATE NAMESPACE lake.shop")
        spark.sql(
            "CREATE TABLE lake.shop.orders (id BIGINT, customer STRING, total DECIMAL(9, 2)) "
            "USING iceberg TBLPROPERTIES ('encryption.key-id'='sales')"
        )
        spark.sql("INSERT INTO lake.shop.orders VALUES (1, 'Ada', 12.50), (2, 'Bo', 7.00)")
        spark.sql("DELETE FROM lake.shop.orders WHERE id = 2")
        spark.table("lake.shop.orders").show()

        with verify_table(spark, "lake.shop.orders") as report:
            print(report)
            data_file = report.files.where("kind = 'data'").first()["path"]
        print(inspect_file(spark, data_file))
        spark.stop()
        if not report.ok:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
