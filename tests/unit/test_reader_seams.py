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
    "pyiceberg.io.pyarrow._to_requested_schema": [
        *("requested_schema", "file_schema", "batch", "downcast_ns_timestamp_to_us"),
        *("include_field_ids", "projected_missing_fields", "allow_timestamp_tz_mismatch"),
        "format_model",
    ],
    "pyiceberg.io.pyarrow.ArrowScan.__init__": [
        *("self", "table_metadata", "io", "projected_schema", "row_filter", "case_sensitive"),
        *("limit", "dictionary_columns"),
    ],
    "pyiceberg.io.pyarrow.ArrowScan.to_record_batches": ["self", "tasks"],
    "pyiceberg.manifest.ManifestFile.fetch_manifest_entry": ["self", "io", "discard_deleted"],
    "pyiceberg.manifest.read_manifest_list": ["input_file"],
    "pyiceberg.table.DataScan._should_use_server_side_planning": ["self"],
    "pyiceberg.table.DataScan._plan_files_local": ["self"],
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


def test_attributes_are_where_they_were() -> None:
    source = inspect.getsource(found("pyiceberg.catalog.rest.RestCatalog"))
    assert "self._session.get(" in source
    assert "self._response_to_table(" in source
    scan = inspect.getsource(found("pyiceberg.io.pyarrow.ArrowScan"))
    for name in ("_io", "_limit", "_bound_row_filter", "_projected_schema", "_table_metadata"):
        assert f"self.{name} = " in scan
    assert "self._filesystem = fs" in inspect.getsource(found("pyiceberg.io.pyarrow.PyArrowFile"))
    assert "self._fs = fs" in inspect.getsource(found("pyiceberg.io.fsspec.FsspecInputFile"))
    assert "_manifest_planner" in inspect.getsource(found("pyiceberg.table.DataScan"))


@cache
def private_of(kind: type) -> set[str]:
    """The private names that a class has, sets or calls."""
    return set(re.findall(r"(?:def |self\.|super\(\)\.)(_[a-z]\w*)", inspect.getsource(kind)))


def test_one_file_touches_the_private_parts_of_pyiceberg() -> None:
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
    assert {name: one for name, one in used.items() if one} == {"_table": {"_do_commit"}}


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
    assert stock - reads == {name for name in refused if not name.startswith("_")}


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
