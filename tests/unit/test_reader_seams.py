"""What the reader uses of PyIceberg's private parts is there, as it was; what moved is named."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _open, open_table

SEAMS = {
    "pyiceberg.avro.file.AvroFile._read_block": ["self"],
    "pyiceberg.avro.file.AvroFile._read_header": ["self"],
    "pyiceberg.catalog.Catalog._load_file_io": ["self", "properties", "location"],
    "pyiceberg.catalog.rest.RestCatalog._load_file_io": ["self", "properties", "location"],
    "pyiceberg.catalog.sql.SqlCatalog._convert_orm_to_iceberg": ["self", "orm_table"],
    "pyiceberg.catalog.hive.HiveCatalog._convert_hive_into_iceberg": ["self", "table"],
    "pyiceberg.catalog.glue.GlueCatalog._convert_glue_to_iceberg": ["self", "glue_table"],
    "pyiceberg.io.pyarrow._combine_positional_deletes": [
        *("positional_deletes", "start_index", "end_index")
    ],
    "pyiceberg.io.pyarrow._get_column_projection_values": [
        *("file", "projected_schema", "table_schema", "partition_spec", "file_project_field_ids")
    ],
    "pyiceberg.io.pyarrow.ArrowProjectionVisitor.__init__": [
        *("self", "file_schema", "downcast_ns_timestamp_to_us", "include_field_ids"),
        *("projected_missing_fields", "allow_timestamp_tz_mismatch", "format_model"),
    ],
    "pyiceberg.io.pyarrow.ArrowProjectionVisitor.list": [
        *("self", "list_type", "list_array", "value_array")
    ],
    "pyiceberg.io.pyarrow.ArrowProjectionVisitor.map": [
        *("self", "map_type", "map_array", "key_result", "value_result")
    ],
    "pyiceberg.io.pyarrow.ArrowScan.__init__": [
        *("self", "table_metadata", "io", "projected_schema", "row_filter", "case_sensitive"),
        *("limit", "dictionary_columns"),
    ],
    "pyiceberg.io.pyarrow.ArrowScan.to_record_batches": ["self", "tasks"],
    "pyiceberg.manifest.ManifestFile.fetch_manifest_entry": ["self", "io", "discard_deleted"],
    "pyiceberg.manifest.ManifestWriterV2.__init__": [
        *("self", "spec", "schema", "output_file", "snapshot_id", "avro_compression")
    ],
    "pyiceberg.manifest.ManifestWriterV2.prepare_entry": ["self", "entry"],
    "pyiceberg.manifest.ManifestWriterV2.new_writer": ["self"],
    "pyiceberg.manifest.ManifestListWriterV2.__init__": [
        *("self", "output_file", "snapshot_id", "parent_snapshot_id", "sequence_number"),
        "compression",
    ],
    "pyiceberg.manifest.ManifestListWriterV2.prepare_manifest": ["self", "manifest_file"],
    "pyiceberg.catalog.Catalog._convert_schema_if_needed": ["schema", "format_version"],
    "pyiceberg.catalog.sql.SqlCatalog._resolve_table_location": [
        *("self", "location", "database_name", "table_name")
    ],
    "pyiceberg.io.pyarrow.ParquetFormatWriter.__init__": [
        *("self", "output_file", "file_schema", "properties")
    ],
    "pyiceberg.io.pyarrow._check_pyarrow_schema_compatible": [
        *("requested_schema", "provided_schema", "downcast_ns_timestamp_to_us", "format_version")
    ],
    "pyiceberg.io.pyarrow._determine_partitions": ["spec", "schema", "arrow_table"],
    "pyiceberg.io.pyarrow.bin_pack_arrow_table": ["tbl", "target_file_size"],
    "pyiceberg.io.pyarrow.bin_pack_record_batches": ["batches", "target_file_size"],
    "pyiceberg.table.Transaction._apply": ["self", "updates", "requirements"],
    "pyiceberg.table.Transaction._rebuild_snapshot_updates": ["self"],
    "pyiceberg.table.Transaction._scan": ["self", "row_filter", "case_sensitive"],
    "pyiceberg.table._parse_row_filter": ["expr"],
    "pyiceberg.table.metadata.new_table_metadata": [
        *("schema", "partition_spec", "sort_order", "location", "properties", "table_uuid")
    ],
    "pyiceberg.table.update.snapshot._SnapshotProducer._commit": ["self"],
    "pyiceberg.table.update.snapshot._SnapshotProducer._refresh_for_retry": ["self"],
    "pyiceberg.table.update.snapshot._SnapshotProducer.new_manifest_writer": ["self", "spec"],
    "pyiceberg.table.DataScan._should_use_server_side_planning": ["self"],
    "pyiceberg.table.DataScan._plan_files_local": ["self"],
    "pyiceberg.table.IncrementalAppendScan._validate_and_resolve_snapshots": ["self"],
    "pyiceberg.table.IncrementalAppendScan.plan_files": ["self"],
    "pyiceberg.table.ManifestGroupPlanner.plan_files": [
        *("self", "manifests", "manifest_entry_filter")
    ],
    "pyiceberg.table.ManifestGroupPlanner.plan_manifest_entries": ["self", "manifests"],
    "pyiceberg.table.ManifestGroupPlanner._build_metrics_evaluator": ["self"],
    "pyiceberg.table.ManifestGroupPlanner._build_residual_evaluator": ["self", "spec_id"],
    "pyiceberg.table.Table._do_commit": ["self", "updates", "requirements"],
    "pyiceberg.table.delete_file_index.DeleteFileIndex.for_data_file": [
        *("self", "seq_num", "data_file", "partition_key")
    ],
    "pyiceberg.table.deletion_vector.deletion_vectors_from_puffin_file": ["puffin_file"],
    "pyiceberg.table.snapshots.Snapshot.manifests": ["self", "io"],
}


def found(name: str) -> Any:
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            value: Any = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


@pytest.mark.parametrize("name", SEAMS)
def test_a_seam_is_where_it_was(name: str) -> None:
    assert list(inspect.signature(found(name)).parameters) == SEAMS[name]


@cache
def sources_in(module: str) -> dict[str, str]:
    """Of each class of a module; inspect.getsource would parse the module for each."""
    text = inspect.getsource(import_module(module))
    lines = text.splitlines(keepends=True)
    return {
        node.name: "".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }


def source_of(kind: type) -> str:
    return sources_in(kind.__module__)[kind.__name__]


def test_attributes_are_where_they_were() -> None:
    source = source_of(found("pyiceberg.catalog.rest.RestCatalog"))
    assert "self._session.get(" in source
    assert "self._response_to_table(" in source
    scan = source_of(found("pyiceberg.io.pyarrow.ArrowScan"))
    for name in ("_io", "_limit", "_bound_row_filter", "_projected_schema", "_table_metadata"):
        assert f"self.{name} = " in scan
    assert "self._filesystem = fs" in source_of(found("pyiceberg.io.pyarrow.PyArrowFile"))
    assert "self._fs = fs" in source_of(found("pyiceberg.io.fsspec.FsspecInputFile"))
    assert "self._parquet_writer_kwargs = " in source_of(
        found("pyiceberg.io.pyarrow.ParquetFormatWriter")
    )
    transaction = source_of(found("pyiceberg.table.Transaction"))
    for name in ("_snapshot_producers", "_failed", "_updates"):
        assert f"self.{name}" in transaction
    producer = source_of(found("pyiceberg.table.update.snapshot._SnapshotProducer"))
    for name in ("_io", "_written_manifests", "_written_manifest_lists", "_snapshot_id"):
        assert f"self.{name} = " in producer
    assert "self._session.post(" in source
    assert "_manifest_planner" in source_of(found("pyiceberg.table.DataScan"))


@cache
def private_of(kind: type) -> set[str]:
    """The private names that a class has, sets or calls."""
    return set(re.findall(r"(?:def |self\.|super\(\)\.)(_[a-z]\w*)", source_of(kind)))


def test_who_touches_the_private_parts_of_pyiceberg() -> None:
    """Reading: one file, but for a method, and Avro's bounds. Writing: classes that are made of PyIceberg's writers."""
    used: dict[str, set[str]] = {}
    for path in Path(_open.__file__).parent.glob("_*.py"):
        module = import_module(f"pyspark_iceberg_crypto.reader.{path.stem}")
        assert path.stem == "_pyiceberg" or not re.search(
            r"^from pyiceberg\S* import \(?[^)\n]*\b_", path.read_text(), re.MULTILINE
        ), path
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                of_pyiceberg = {
                    name
                    for one in kind.__mro__
                    if one.__module__.startswith("pyiceberg.")
                    for name in private_of(one)
                }
                used.setdefault(path.stem, set()).update(private_of(kind) & of_pyiceberg)
    assert "_io" in used.pop("_pyiceberg")
    assert {name for name, one in used.items() if one} == {
        *("_bounded_avro", "_manifests", "_table", "_write"),
    }
    assert used["_bounded_avro"] == {"_read_header", "_read_block"}
    assert used["_table"] == {"_do_commit"}
    assert used["_manifests"] == {"_meta", "_with_partition", "_writer", "_output_file"}


def test_no_way_to_write_was_added() -> None:
    """What a table has beyond this is new: see whether it writes."""
    from pyspark_iceberg_crypto.reader import _table

    reads = {
        *("catalog", "current_snapshot", "format_version", "history", "incremental_append_scan"),
        *("inspect", "last_partition_id", "last_sequence_number", "location", "location_provider"),
        *("maintenance", "name", "name_mapping", "properties", "refresh", "refs", "scan", "schema"),
        *("schemas", "snapshot_as_of_timestamp", "snapshot_by_id", "snapshot_by_name", "snapshots"),
        *("sort_order", "sort_orders", "spec", "specs", "to_polars", "metadata_location"),
    }
    table = found("pyiceberg.table.Table")
    stock = {name for name in vars(table) if not name.startswith("_")}
    refused = {*_table._WRITES, *_table._OF_OTHER_READERS}
    written = {"append", "delete", "overwrite", "transaction", "update_schema"}
    assert stock - reads - written == {name for name in refused if not name.startswith("_")}


def test_no_way_to_write_was_added_to_transactions() -> None:
    from pyspark_iceberg_crypto.reader import _write

    transaction = found("pyiceberg.table.Transaction")
    stock = {name for name in vars(transaction) if not name.startswith("_")}
    written = {*("append", "delete", "overwrite", "update_schema", "update_snapshot")}
    assert stock - written - {"commit_transaction", "table_metadata"} == {*_write._REFUSED}


def test_the_version_is_in_the_range() -> None:
    assert metadata.version("pyiceberg").startswith(f"{_open.SUPPORTED}.")


def test_pyiceberg_of_another_version_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _open._require_pyiceberg.cache_clear()
    monkeypatch.setattr(metadata, "version", lambda _: "0.13.1")
    with pytest.raises(errors.ConfigurationError, match=r"PyIceberg 0\.13\.1 is installed"):
        open_table("/t")

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(errors.ConfigurationError, match="PyIceberg is not installed"):
        open_table("/t")


def test_pyspark_is_not_imported() -> None:
    for path in Path(_open.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            module = node.module if isinstance(node, ast.ImportFrom) else None
            tops = {name.partition(".")[0] for name in [*names, module or ""]}
            assert not tops & {"pyspark", "py4j"}, path
