r"""Verify every table of a catalog: for a nightly job, or before an audit.

Arguments: the catalog's properties, without the prefix spark.sql.catalog.NAME:

    python examples/verify_catalog.py type=rest uri=http://localhost:8181 \
        encryption.kms-type=keystore encryption.kms.keystore.path=/etc/spark/keys.p12 \
        encryption.kms.keystore.password-env=KEYSTORE_PASSWORD

Exit code: 0 every file of every table is encrypted, 1 a table has a problem, 2 a table could not be checked.
"""

import sys
from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import IcebergCryptoError, configure_spark, verify_table

CATALOG = "lake"


def namespaces(spark: SparkSession, parent: str) -> Iterator[str]:
    """Every namespace of the catalog, at any depth, as SQL names it."""
    for row in spark.sql(f"SHOW NAMESPACES IN {parent}").collect():
        name = f"{CATALOG}.{row.namespace}"
        yield name
        yield from namespaces(spark, name)


def tables(spark: SparkSession) -> Iterator[str]:
    """Every table of the catalog."""
    for namespace in namespaces(spark, CATALOG):
        for row in spark.sql(f"SHOW TABLES IN {namespace}").collect():
            yield f"{namespace}.`{row.tableName}`"


def check(spark: SparkSession, table: str) -> int:
    """Verify one table, print the result, and return its exit code."""
    try:
        with verify_table(spark, table, all_snapshots=True) as report:
            print(report)
            return 0 if report.ok else 1
    except (IcebergCryptoError, PySparkException) as error:
        print(f"error: {table} could not be checked: {error}", file=sys.stderr)
        return 2


def main(settings: list[str]) -> int:
    """Verify all tables and return the worst exit code."""
    options = dict(setting.split("=", 1) for setting in settings)
    builder = SparkSession.builder.appName("verify_catalog")
    spark = configure_spark(builder, CATALOG, options=options).getOrCreate()
    codes = [check(spark, table) for table in tables(spark)]
    spark.stop()
    print(
        f"{len(codes)} tables: {codes.count(0)} encrypted, {codes.count(1)} with problems, ", end=""
    )
    print(f"{codes.count(2)} not checked")
    return max(codes, default=0)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all("=" in setting for setting in sys.argv[1:]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
