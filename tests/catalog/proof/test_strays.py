"""Files that no metadata reaches, below tables and in plain folders."""

import json
from pathlib import Path

import pytest
from harness.files import MARKER
from harness.lake import Lake

from pyspark_iceberg_crypto import verify_table

pytestmark = pytest.mark.catalogs("rest")


@pytest.mark.nightly
def test_a_clean_table_has_no_strays(lake: Lake) -> None:
    table = lake.insert(lake.create(partition="part", write_delete_mode="merge-on-read"), range(3))
    lake.insert(table, [5], part="q")
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    with verify_table(lake.spark, table, strays=True) as report:
        assert report.ok, report
        kinds = {row.kind for row in report.files.collect()}
    assert "stray" not in kinds
    assert report.all_snapshots, "strays are what no snapshot reaches"


def test_each_stray_is_told_and_a_plaintext_one_is_a_problem(lake: Lake) -> None:
    table = lake.insert(lake.create(partition="part"), [1])
    folder = lake.folder / "t"
    encrypted = next(path for path in lake.files() if path.suffix == ".parquet")
    deep = folder / "data" / "part=p" / "_temporary" / "0" / ".hidden"
    deep.mkdir(parents=True)
    (deep / "orphan.parquet").write_bytes(encrypted.read_bytes())
    (deep / "_SUCCESS").write_bytes(b"")
    (folder / "metadata" / "stage-1-manifest.avro").write_bytes(b"Obj\x01" + MARKER.encode())
    (folder / "data" / "rows.parquet").write_bytes(b"PAR1" + MARKER.encode())
    (folder / "rows.metadata.json").write_text('{"note": "not metadata"}')
    (folder / "rows.csv").write_text(f"1,{MARKER}")
    (folder / "metadata" / "v99.metadata.json").write_bytes(
        newest(folder / "metadata").read_bytes()
    )
    metadata = json.loads(newest(folder / "metadata").read_text())
    (folder / "view.metadata.json").write_text(json.dumps(VIEW))
    (folder / "v100.metadata.json").write_text(json.dumps({**metadata, "format-version": 9}))
    (folder / "later-view.metadata.json").write_text(json.dumps({**VIEW, "format-version": 9}))
    (folder / "later.avro").write_bytes(b"AGS2" + bytes(9))
    (folder / "empty.metadata.json").write_bytes(b"")
    (folder / "csv.metadata.json").write_text("1,x")
    with verify_table(lake.spark, table, strays=True) as report:
        strays = {Path(row.path).name: row for row in report.files.collect() if row.kind == "stray"}
    assert not report.ok
    assert {Path(p.path).name: p.code for p in report.problems} == {
        "stage-1-manifest.avro": "plaintext",
        "rows.parquet": "plaintext",
        "rows.metadata.json": "plaintext",
        "rows.csv": "plaintext",
        "csv.metadata.json": "plaintext",
        "v100.metadata.json": "unreadable",
        "later-view.metadata.json": "unreadable",
        "later.avro": "unreadable",
    }
    assert all(p.kind == "stray" for p in report.problems)
    assert all(
        ("no metadata reaches it" in p.problem) == (p.code == "plaintext") for p in report.problems
    )
    assert {name: row.magic for name, row in strays.items() if row.problem is None} == {
        "orphan.parquet": "PARE",
        "_SUCCESS": "EMPTY",
        "empty.metadata.json": "EMPTY",
        "v99.metadata.json": "JSON",
        "view.metadata.json": "JSON",
    }
    assert not any(p.kind == "stray" for p in verify_table(lake.spark, table).problems)


VIEW = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "file:///views/v",
    "schemas": [{"schema-id": 0, "type": "struct", "fields": []}],
    "current-version-id": 1,
    "versions": [
        {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["db"],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        }
    ],
    "version-log": [{"timestamp-ms": 1, "version-id": 1}],
}


def newest(metadata: Path) -> Path:
    return max(metadata.rglob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
