r"""Verify every table of a catalog, and keep the report: for a nightly job, or before an audit.

Arguments: the catalog's properties, without the prefix spark.sql.catalog.NAME:

    python examples/verify_catalog.py type=rest uri=http://localhost:8181 \
        encryption.kms-type=keystore encryption.kms.keystore.path=/etc/spark/keys.p12 \
        encryption.kms.keystore.password-env=KEYSTORE_PASSWORD

Writes report.json and report.html. The command `iceberg-crypto verify lake` does the same.

Exit code: 0 every file of every table is encrypted, 1 a table has a problem, 2 something could not be checked.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import configure_spark, verify_catalog

CATALOG = "lake"


def main(settings: list[str]) -> int:
    """Verify all tables, print what was found, and return the exit code."""
    options = dict(setting.split("=", 1) for setting in settings)
    builder = SparkSession.builder.appName("verify_catalog")
    spark = configure_spark(builder, CATALOG, options=options).getOrCreate()
    report = verify_catalog(spark, CATALOG, all_snapshots=True)
    print(report)
    Path("report.json").write_text(report.to_json(), encoding="utf-8")
    Path("report.html").write_text(report.to_html(), encoding="utf-8")
    spark.stop()
    return report.exit_code


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all("=" in setting for setting in sys.argv[1:]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
