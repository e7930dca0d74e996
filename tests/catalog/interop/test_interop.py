"""Tables stay Iceberg tables: stock Iceberg on Hive reads ours, we read its. And a second process reads all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness.files import MARKER
from harness.lake import Lake
from harness.world import KINDS, World, back_up_metastore
from pyspark.sql import SparkSession

READER = """
import json, sys
from pyspark.sql import SparkSession
conf, tables = json.load(sys.stdin)
builder = SparkSession.builder
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
rows = {t: sorted(row.id for row in spark.table(t).collect()) for t in tables}
print("ROWS " + json.dumps(rows))
spark.stop()
"""


@pytest.mark.parametrize(
    "file_format", ["parquet", pytest.param("avro", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize(
    "writer, reader",
    [
        ("enc_hive", "stock_hive"),
        pytest.param("stock_hive", "enc_hive", marks=pytest.mark.nightly),
    ],
)
def test_hive_interop(hive: Lake, writer: str, reader: str, file_format: str) -> None:
    """Both read, change and read again what the other wrote."""
    one, other = hive.table("t", writer), hive.table("t", reader)
    hive.run(
        f"CREATE TABLE {one} (id BIGINT, note STRING, part STRING) USING iceberg PARTITIONED BY (part) "
        "TBLPROPERTIES ('encryption.key-id'='k1', 'format-version'='3', 'write.delete.mode'='merge-on-read', "
        f"'write.format.default'='{file_format}')"
    )
    hive.insert(one, range(5))
    hive.run(f"DELETE FROM {one} WHERE id = 1")
    hive.sql(f"REFRESH TABLE {other}")
    assert hive.ids(other) == [0, 2, 3, 4]
    hive.insert(other, [6])
    hive.run(f"DELETE FROM {other} WHERE id = 2")
    hive.run(
        f"MERGE INTO {other} t USING (SELECT 7L AS id) s ON t.id = s.id "
        f"WHEN NOT MATCHED THEN INSERT (id, note, part) VALUES (7, '{MARKER}', 'q')"
    )
    hive.sql(f"REFRESH TABLE {one}")
    assert hive.ids(one) == [0, 3, 4, 6, 7]
    options = "options => map('rewrite-all', 'true')"
    catalog = one.split(".")[0]
    hive.run(f"CALL {catalog}.system.rewrite_data_files(table => '{hive.namespace}.t', {options})")
    hive.sql(f"REFRESH TABLE {other}")
    assert hive.ids(other) == [0, 3, 4, 6, 7]


@pytest.mark.nightly
def test_another_process_reads_every_catalog(
    spark: SparkSession, world: World, tmp_path: Path
) -> None:
    tables = []
    for kind in KINDS:
        lake = Lake(spark, world, kind, f"enc_{kind}")
        table = lake.insert(lake.create(write_delete_mode="merge-on-read"), [1, 2, 3])
        lake.run(f"DELETE FROM {table} WHERE id = 2")
        tables.append(table)
    conf = world.session_conf(metastore=back_up_metastore(spark, world, tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input=json.dumps([conf, tables]),
        capture_output=True,
        text=True,
        timeout=180,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer = next(line for line in done.stdout.splitlines() if line.startswith("ROWS "))
    assert json.loads(answer.removeprefix("ROWS ")) == {table: [1, 3] for table in tables}
