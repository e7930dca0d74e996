"""Statistics files with encryption.statistics=encrypt: AES GCM streams that we read and others ignore."""

import re
from pathlib import Path
from typing import Any

import pytest
from harness.files import MARKER, everything_below, magic, marker_in
from harness.jars import ROOT
from harness.lake import Lake
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table

pytestmark = pytest.mark.catalogs("jdbc")

PROCEDURES = ("compute_table_stats", "compute_partition_stats")
COST = {"spark.sql.cbo.enabled": "true", "spark.sql.iceberg.report-column-stats": "true"}


def partition_counts(table: Any) -> dict[str, int]:
    rows = table.newPartitionStatisticsScan().scan()
    jvm_class = table.getClass().forName("java.lang.String")
    counts = {}
    iterator = rows.iterator()
    while iterator.hasNext():
        row = iterator.next()
        counts[row.partition().get(0, jvm_class)] = row.dataRecordCount()
    rows.close()
    return counts


def statistics_files(lake: Lake) -> list[Path]:
    """Those on disk."""
    named = (path for path in everything_below(lake.folder) if path.suffix != ".crc")
    return sorted(p for p in named if p.suffix == ".stats" or p.name.startswith("partition-stats-"))


def test_statistics_are_encrypted_and_used(lake: Lake) -> None:
    lake = lake.with_options({"encryption.statistics": "encrypt"})
    table = lake.insert(lake.create(partition="part"), [1, 2], part=MARKER)
    for procedure in PROCEDURES:
        lake.call(procedure)
    assert [magic(path) for path in statistics_files(lake)] == [b"AGS1"] * 2
    lake.insert(table, [3], part="q")
    for procedure in PROCEDURES:
        lake.call(procedure)
    keys = lake.java().operations().current().encryptionKeys()
    of_statistics = [key for key in keys if key.properties().containsKey("statistics-path")]
    assert len(statistics_files(lake)) == len(of_statistics) == 4
    assert marker_in(lake.folder) == []

    # a JDBC catalog sees the tables made under its own name
    other = lake if lake.kind == "jdbc" else lake.with_options({"encryption.statistics": "refuse"})
    other.sql(f"SELECT 1 FROM {other.table()}")  # loads the catalog, which REFRESH does not
    assert partition_counts(other.java()) == {MARKER: 2, "q": 1}
    report = verify_table(lake.spark, other.table())
    assert report.ok, report
    kinds = {row.kind for row in report.files.collect()}
    assert {"statistics", "partition statistics"} <= kinds
    if lake.kind == "hive":  # the one catalog where stock Iceberg encrypts
        assert lake.ids(lake.table(catalog="stock_hive")) == [1, 2, 3]
        lake.sql(f"INSERT INTO {lake.table(catalog='stock_hive')} VALUES (4, '{MARKER}', 'q')")
        lake.sql(f"REFRESH TABLE {table}")
        lake.call("compute_partition_stats")
        assert partition_counts(lake.java()) == {MARKER: 2, "q": 2}


@pytest.mark.nightly
def test_the_optimizer_uses_them(hadoop: Lake, spark: SparkSession) -> None:
    """Spark reads the counts of distinct values, which Iceberg copies to metadata.json, in plaintext."""
    lake = hadoop.with_options({"encryption.statistics": "encrypt"})
    table = lake.insert(lake.create(), range(7))
    lake.call("compute_table_stats")
    for key, value in COST.items():
        spark.conf.set(key, value)
    try:
        lake.sql(f"REFRESH TABLE {table}")
        cost = lake.value(f"EXPLAIN COST SELECT DISTINCT id FROM {table}")
        assert "rowCount=7" in cost, cost
        assert lake.ids(table, "WHERE id > 4") == [5, 6]
    finally:
        for key in COST:
            spark.conf.unset(key)


def test_plaintext_statistics_are_found(hadoop: Lake) -> None:
    lake = hadoop.with_options({"encryption.statistics": "plaintext"})
    table = lake.insert(lake.create(partition="part"), [1], part=MARKER)
    for procedure in PROCEDURES:
        lake.sql(f"CALL {lake.catalog}.system.{procedure}(table => '{lake.namespace}.t')")
    assert {magic(path) for path in statistics_files(lake)} == {b"PFA1", b"PAR1"}
    assert partition_counts(lake.java()) == {MARKER: 1}
    report = verify_table(lake.spark, table)
    assert {p.kind for p in report.problems} == {"statistics", "partition statistics"}
    assert all("encryption.statistics=encrypt" in p.hint for p in report.problems)
    with pytest.raises(Exception, match=r"PlaintextException: Table .*\.t: .*partition-stats-"):
        partition_counts(hadoop.java())
    page = (ROOT / "docs" / "statistics.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code.replace("lake.shop.orders", table), {"spark": lake.spark})
    lake.sql(f"REFRESH TABLE {table}")
    assert verify_table(lake.spark, table).ok
    assert len(statistics_files(lake)) == 2
