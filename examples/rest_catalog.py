"""An encrypted table on a REST catalog.

The keystore is created if it does not exist; its password is in the environment:

    export KEYSTORE_PASSWORD=...
    python examples/rest_catalog.py http://localhost:8181 keys.p12

The table, lake.example.orders, remains on the server. Keep the keystore: the table is unreadable without it.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import Keystore, configure_spark, kms_metrics, verify_table

PASSWORD = "KEYSTORE_PASSWORD"  # the variable's name, not the password
TABLE = "lake.example.orders"


def main(uri: str, keystore: str) -> int:
    """Create the table if needed, change rows, verify it; return 0 if every file is encrypted."""
    if Path(keystore).exists():
        keys = Keystore(keystore, password_env=PASSWORD)
    else:
        keys = Keystore.create(keystore, keys=["sales"], password_env=PASSWORD)

    builder = SparkSession.builder.appName("rest_catalog").master("local[2]")
    spark = configure_spark(builder, "lake", type="rest", uri=uri, kms=keys).getOrCreate()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.example")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {TABLE} (id BIGINT, state STRING) "
        "USING iceberg TBLPROPERTIES ('encryption.key-id'='sales')"
    )
    spark.sql(
        f"MERGE INTO {TABLE} t USING (SELECT id, 'new' AS state FROM range(3)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET state = 'seen again' WHEN NOT MATCHED THEN INSERT *"
    )
    spark.table(TABLE).orderBy("id").show()

    with verify_table(spark, TABLE, all_snapshots=True) as report:
        print(report)
    print(kms_metrics(spark, "lake"))
    spark.stop()
    return 0 if report.ok else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
