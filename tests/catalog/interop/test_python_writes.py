"""Tables that Python writes without Spark, and Spark with this project's jar, in turns."""

import pyarrow as pa
import pytest
from harness.files import MARKER
from harness.lake import Lake
from harness.world import World
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table
from pyspark_iceberg_crypto.reader import create_table, open_table
from pyspark_iceberg_crypto.reader import verify_table as verify_in_python
from pyspark_iceberg_crypto.reader._catalogs import catalog_of

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "note", StringType(), required=False),
    NestedField(3, "part", StringType(), required=False),
)
BY_PART = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "part"))


def rows(*ids: int, part: str = "p") -> pa.Table:
    notes = [f"{MARKER}-{one}" for one in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "note": notes, "part": [part] * len(ids)})


@pytest.mark.parametrize(
    "kind",
    ["jdbc", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("hadoop", "rest"))],
)
def test_spark_and_python_write_in_turns(spark: SparkSession, world: World, kind: str) -> None:
    lake = Lake(spark, world, kind, f"enc_{kind}")
    name, table = f"{lake.namespace}.t", lake.table()
    properties = {"encryption.kms-type": "keystore", **world.keystore_options()}
    catalog = catalog_of(lake.catalog, world.ours(kind))
    told = {"encryption.data-key-length": "32", "write.delete.mode": "merge-on-read"}
    made = create_table(
        catalog,
        name,
        SCHEMA,
        key_id="k1",
        properties=properties,
        partition_spec=BY_PART,
        table_properties=told,
    )
    made.append(pa.concat_tables([rows(1, 2, 3, 4), rows(5, part="q")]))
    assert lake.ids(table) == [1, 2, 3, 4, 5]
    lake.assert_encrypted("written by Python")

    def lineage() -> dict[int, tuple[int, int]]:
        columns = "id, _row_id, _last_updated_sequence_number"
        return {one[0]: one[1:] for one in lake.rows(f"SELECT {columns} FROM {table}")}

    before = lineage()
    lake.run(f"DELETE FROM {table} WHERE id = 2")  # a deletion vector
    lake.insert(table, [6, 7])
    made.refresh()
    with pytest.warns(UserWarning, match="copy-on-write"):
        made.delete("id = 3")  # writes the file with the vector again
        made.overwrite(rows(70), "id = 7")
    lake.sql(f"REFRESH TABLE {table}")
    assert lake.ids(table) == [1, 4, 5, 6, 70]
    after = lineage()
    assert {one: after[one] for one in (1, 4, 5)} == {one: before[one] for one in (1, 4, 5)}
    assert len({row for row, _ in after.values()}) == 5
    lake.run(f"UPDATE {table} SET part = 'r' WHERE id = 4")
    lake.run(f"CALL {lake.catalog}.system.rewrite_data_files(table => '{name}')")
    lake.run(f"CALL {lake.catalog}.system.rewrite_manifests(table => '{name}')")
    made.refresh()
    made.append(rows(8))
    lake.sql(f"REFRESH TABLE {table}")
    again = open_table(catalog, name, properties=properties)
    assert (
        sorted(again.scan().to_arrow()["id"].to_pylist()) == lake.ids(table) == [1, 4, 5, 6, 8, 70]
    )
    report = verify_table(spark, table, deep=True, all_snapshots=True)
    assert report.ok, report
    in_python = verify_in_python(
        catalog, name, properties=properties, deep=True, all_snapshots=True
    )
    assert in_python.to_dict()["problems"] == []
    assert lake.value(f"SELECT count(*) FROM {table}.snapshots") == len(made.refresh().snapshots())
