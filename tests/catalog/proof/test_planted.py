"""Each kind of damage, planted in each kind of file: exactly that is found, and nothing on the whole table."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.lake import Lake
from pyspark.sql import Row

from pyspark_iceberg_crypto import verify_table

pytestmark = pytest.mark.catalogs("hadoop")

KINDS = {
    "data",
    "deletion vector",
    "manifest",
    "manifest list",
    "statistics",
    "partition statistics",
}


@contextmanager
def planted(path: Path, content: bytes | None) -> Iterator[None]:
    whole = path.read_bytes()
    checksum = path.with_name(f".{path.name}.crc")
    sums = checksum.read_bytes() if checksum.exists() else None
    checksum.unlink(missing_ok=True)
    path.unlink() if content is None else path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(whole)
        if sums is not None:
            checksum.write_bytes(sums)


def test_exactly_what_was_planted_is_found(lake: Lake) -> None:
    lake = lake.with_options({"encryption.statistics": "encrypt"})
    table = lake.create(partition="part", write_delete_mode="merge-on-read")
    lake.insert(table, range(3))
    lake.run(f"DELETE FROM {table} WHERE id = 1")
    for procedure in ("compute_table_stats", "compute_partition_stats"):
        lake.call(procedure)
    other = lake.create("other")
    lake.insert(other, range(5))
    with verify_table(lake.spark, table, deep=True) as report:
        assert report.ok, report
        files = {row.kind: row for row in report.files.collect()}
    assert set(files) == KINDS

    for kind, row in files.items():
        path = Path(row.path.removeprefix("file:"))
        whole = path.read_bytes()
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        damages: dict[str, bytes | None] = {"tampered": flipped}
        if kind == "manifest":
            damages["truncated"] = whole[:-3]
        if kind == "manifest list":
            damages["missing"] = None
        for code, content in damages.items():
            with planted(path, content):
                found = verify_table(lake.spark, table, deep=True)
            assert not found.ok
            assert [(p.kind, Path(p.path).name, p.code) for p in found.problems] == [
                (kind, path.name, code)
            ]
    swapped_in = of_kind(lake, other, "data")
    data = Path(files["data"].path.removeprefix("file:"))
    with planted(data, Path(swapped_in.path.removeprefix("file:")).read_bytes()):
        found = verify_table(lake.spark, table, deep=True)
    assert [(p.kind, Path(p.path).name) for p in found.problems] == [("data", data.name)]


def of_kind(lake: Lake, table: str, kind: str) -> Row:
    with verify_table(lake.spark, table) as report:
        return next(row for row in report.files.collect() if row.kind == kind)
