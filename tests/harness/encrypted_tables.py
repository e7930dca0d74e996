"""Encrypted tables that a test writes without a JVM: Parquet or Avro, partitions, deletes, and metadata with a MAC."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, LongType, NestedField, StringType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from pyspark_iceberg_crypto.reader import _ags1, _keys, _mac
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata

DATA, POSITIONS, EQUALITY = 0, 1, 2


@dataclass
class OwnKms:
    """A KMS as a user may have one: two methods, and it proves who wrapped a key."""

    asked: list[str] = field(default_factory=list)
    authentic: bool = True

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher(wrapping_key_id).encrypt(nonce, key, None)

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        self.asked.append(wrapping_key_id)
        return self._cipher(wrapping_key_id).decrypt(wrapped_key[:12], wrapped_key[12:], None)

    def authenticates_wrapping(self, wrapping_key_id: str) -> bool:
        return self.authentic

    @staticmethod
    def _cipher(key_id: str) -> AESGCM:
        return AESGCM(hashlib.sha256(key_id.encode()).digest())


@dataclass
class File:
    """A file that a manifest lists."""

    path: Path
    content: int
    form: str
    rows: int
    key: bytes | None
    partition: dict[str, Any]
    spec: int
    equality: list[int] | None = None
    bounds: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)
    length: int = 0


class Writer:
    """One table.

    Attributes:
        document: its metadata.
        location: where the last metadata file is.
    """

    def __init__(
        self,
        folder: Path,
        schema: Schema,
        *,
        bits: int = 128,
        kms: OwnKms | None = None,
        partition: str | None = None,
        hadoop: bool = False,
        signed: bool = True,
        form: str = "parquet",
        key_id: str | None = "k1",
        lengths: bool = True,
    ) -> None:
        """Make an empty table; `partition` names a column, whose values are the partitions."""
        self.folder, self.bits, self.kms, self.form = folder, bits // 8, kms or OwnKms(), form
        self.hadoop, self.signed, self.key_id, self.lengths = hadoop, signed, key_id, lengths
        self.version, self.location = 0, ""
        self.manifests: list[dict[str, Any]] = []
        (folder / "data").mkdir(parents=True)
        self.metadata_folder = folder / "metadata"
        self.metadata_folder.mkdir()
        self.kek = os.urandom(16)
        self.kek_id, self.made = "kek", str(int(time.time() * 1000))
        keks = []
        if key_id is not None:
            wrapped = self.kms.wrap_key(self.kek, key_id)
            keks = [self._entry(self.kek_id, wrapped, key_id, {"KEY_TIMESTAMP": self.made})]
        specs = [{"spec-id": 0, "fields": []}]
        if partition:
            specs = [{"spec-id": 0, "fields": [self._identity(schema, partition)]}]
        properties = {} if key_id is None else {"encryption.key-id": key_id}
        self.document: dict[str, Any] = {
            "format-version": 3,
            "table-uuid": str(uuid.uuid4()),
            "location": folder.as_uri(),
            "last-sequence-number": 0,
            "last-updated-ms": int(time.time() * 1000),
            "last-column-id": schema.highest_field_id,
            "current-schema-id": 0,
            "schemas": [],
            "default-spec-id": 0,
            "partition-specs": specs,
            "last-partition-id": 1000,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": properties | {"encryption.data-key-length": str(self.bits)},
            "refs": {},
            "snapshots": [],
            "snapshot-log": [],
            "metadata-log": [],
            "next-row-id": 0,
            "encryption-keys": keks,
        }
        self.evolve(schema)

    def evolve(self, schema: Schema) -> None:
        """Make a schema the current one."""
        number = len(self.document["schemas"])
        made = json.loads(schema.model_copy(update={"schema_id": number}).model_dump_json())
        self.document["schemas"].append(made)
        self.document["current-schema-id"] = number
        self.document["last-column-id"] = max(
            self.document["last-column-id"], schema.highest_field_id
        )
        self.schema = schema

    def repartition(self, column: str | None) -> None:
        """Make another partition spec the default one."""
        number = len(self.document["partition-specs"])
        fields = [self._identity(self.schema, column, 1000 + number)] if column else []
        self.document["partition-specs"].append({"spec-id": number, "fields": fields})
        self.document["default-spec-id"] = number
        self.document["last-partition-id"] = 1000 + number

    def file(
        self,
        rows: list[dict[str, Any]],
        content: int = DATA,
        *,
        schema: Schema | None = None,
        form: str | None = None,
        partition: Any = None,
        equality: list[int] | None = None,
        encrypted: bool = True,
        version: str = "1.0",
    ) -> File:
        """Write a data or delete file."""
        schema, form = schema or self.schema, form or self.form
        path = self.folder / "data" / f"{uuid.uuid4()}.{form}"
        key = None
        if form == "avro":
            key = self._avro(path, schema, rows, encrypted)
        else:
            key = self._parquet(path, schema, rows, encrypted, version)
        spec = self.document["default-spec-id"]
        fields = self.document["partition-specs"][spec]["fields"]
        bounds = {}
        for column in schema.fields:
            values = [one[column.name] for one in rows if one.get(column.name) is not None]
            if column.field_type.is_primitive and values and isinstance(values[0], int | str):
                ends = (to_bytes(column.field_type, one) for one in (min(values), max(values)))
                bounds[column.field_id] = tuple(ends)
        return File(
            path,
            content,
            form.upper(),
            len(rows),
            key,
            {one["name"]: partition for one in fields},
            spec,
            equality,
            bounds,
            path.stat().st_size,
        )

    def parquet(self, table: pa.Table, row_group: int | None = None) -> File:
        """Write an Arrow table as a data file, with row groups of so many rows; nothing is said of its values."""
        path = self.folder / "data" / f"{uuid.uuid4()}.parquet"
        options = {"compression": "zstd"}
        encrypted = self.key_id is not None
        key = self._write(path, self.schema, table, encrypted, row_group, **options)
        length = path.stat().st_size
        return File(path, DATA, "PARQUET", len(table), key, {}, 0, length=length)

    def positions(self, file: File, positions: list[int], form: str | None = None) -> File:
        """Write a position delete file."""
        schema = Schema(
            NestedField(2147483546, "file_path", StringType(), required=True),
            NestedField(2147483545, "pos", LongType(), required=True),
        )
        rows = [{"file_path": file.path.as_uri(), "pos": one} for one in positions]
        partition = next(iter(file.partition.values()), None)
        return self.file(rows, POSITIONS, schema=schema, form=form, partition=partition)

    def append(self, rows: list[dict[str, Any]], **options: Any) -> File:
        """Write rows as one file, and commit it."""
        file = self.file(rows, **options)
        self.commit(file)
        return file

    def commit(self, *files: File, branch: str = "main") -> str:
        """Commit files; returns where the metadata file is."""
        document, snapshot = self.document, random.getrandbits(62)
        sequence = document["last-sequence-number"] + 1
        for content in (DATA, 1):
            for spec in sorted({one.spec for one in files}):
                these = [o for o in files if min(o.content, 1) == content and o.spec == spec]
                if these:
                    made = self._manifest(these, content, spec, snapshot, sequence)
                    self.manifests = [made, *self.manifests]
        self._snapshot(snapshot, sequence, sum(o.rows for o in files if o.content == DATA), branch)
        return self.write()

    def write(self) -> str:
        """Write metadata.json, with a MAC; returns where it is."""
        self.version += 1
        name = (
            f"v{self.version}.metadata.json"
            if self.hadoop
            else f"{self.version:05d}-{uuid.uuid4()}.metadata.json"
        )
        path = self.metadata_folder / name
        self.location = path.as_uri()
        if self.signed and self.key_id is not None:
            self.sign()
        path.write_bytes(self._text())
        if self.hadoop:
            (self.folder / "metadata" / "version-hint.text").write_text(str(self.version))
        return self.location

    @property
    def metadata(self) -> Path:
        """The last metadata file."""
        return Path(self.location.removeprefix("file://"))

    def sign(self) -> None:
        """Put the MAC of the document into its properties."""
        key = _mac.key(self.kek, self.document["table-uuid"])
        self.document["properties"].setdefault(_mac.PROPERTY, "")
        signed = _mac.sign(self._text(), _mac.Place.of(self.location), key, self.kek_id)
        self.document = json.loads(signed)

    def _text(self) -> bytes:
        """The document as Iceberg writes it: without white space."""
        return json.dumps(self.document, separators=(",", ":"), ensure_ascii=False).encode()

    @property
    def list(self) -> Path:
        """The manifest list of the last snapshot."""
        return Path(self.document["snapshots"][-1]["manifest-list"].removeprefix("file://"))

    def _snapshot(self, snapshot: int, sequence: int, rows: int, branch: str) -> None:
        document, first = self.document, self.document["next-row-id"]
        path = self.folder / "metadata" / f"snap-{snapshot}.avro"
        head = {"snapshot-id": str(snapshot), "sequence-number": str(sequence)}
        data = _avro_bytes(_LIST, self.manifests, {**head, "format-version": "3"})
        key = self._ags1(path, data)
        key_id = None
        if self.key_id is not None:
            key_id = f"list-{snapshot}"
            kek = _keys.EncryptedKey(self.kek_id, b"", None, {"KEY_TIMESTAMP": self.made})
            sealed = _keys.seal(self.kek, kek, key)
            document["encryption-keys"].append(self._entry(key_id, sealed, self.kek_id, None))
        now = document["last-updated-ms"] + 1
        told = {
            "sequence-number": sequence,
            "snapshot-id": snapshot,
            "timestamp-ms": now,
            "summary": {"operation": "append" if rows else "overwrite"},
            "manifest-list": path.as_uri(),
            "schema-id": document["current-schema-id"],
            "first-row-id": first,
            "added-rows": rows,
            "key-id": key_id,
        }
        if branch in document["refs"]:
            told["parent-snapshot-id"] = document["refs"][branch]["snapshot-id"]
        document["snapshots"].append({k: v for k, v in told.items() if v is not None})
        document["refs"][branch] = {"snapshot-id": snapshot, "type": "branch"}
        document["snapshot-log"].append({"timestamp-ms": now, "snapshot-id": snapshot})
        document |= {
            "last-sequence-number": sequence,
            "last-updated-ms": now,
            "next-row-id": first + rows,
        }
        if branch == "main":
            document["current-snapshot-id"] = snapshot

    def _manifest(
        self, files: list[File], content: int, spec: int, snapshot: int, sequence: int
    ) -> dict[str, Any]:
        fields = self.document["partition-specs"][spec]["fields"]
        types = [self.schema.find_type(one["source-id"]) for one in fields]
        entries = [_entry_of(one, snapshot) for one in files]
        for entry, one in zip(entries, files, strict=True):
            entry["data_file"]["key_metadata"] = one.key
        path = self.folder / "metadata" / f"{uuid.uuid4()}-m0.avro"
        head = {
            "schema": self.schema.model_dump_json(),
            "partition-spec": json.dumps(fields),
            "partition-spec-id": str(spec),
            "format-version": "3",
            "content": "deletes" if content else "data",
        }
        partition = [
            _field(one["field-id"], one["name"], _avro_type(kind))
            for one, kind in zip(fields, types, strict=True)
        ]
        key = self._ags1(path, _avro_bytes(_entries(partition), entries, head))
        rows = sum(one.rows for one in files)
        counts = {f"{what}_files_count": 0 for what in ("existing", "deleted")}
        counts |= {f"{what}_rows_count": 0 for what in ("existing", "deleted")}
        summaries = [
            {
                "contains_null": any(one.partition[part["name"]] is None for one in files),
                "lower_bound": _end(kind, [one.partition[part["name"]] for one in files], min),
                "upper_bound": _end(kind, [one.partition[part["name"]] for one in files], max),
            }
            for part, kind in zip(fields, types, strict=True)
        ]
        return {
            "manifest_path": path.as_uri(),
            "manifest_length": path.stat().st_size,
            "partition_spec_id": spec,
            "content": content,
            "sequence_number": sequence,
            "min_sequence_number": sequence,
            "added_snapshot_id": snapshot,
            "added_files_count": len(files),
            "added_rows_count": rows,
            "partitions": summaries,
            "key_metadata": key.encode() if self.key_id else None,
            **counts,
        }

    def _ags1(self, path: Path, data: bytes) -> KeyMetadata:
        stored, key = _ags1.encrypt(data, self.bits)
        path.write_bytes(stored if self.key_id else data)
        return key if self.lengths else KeyMetadata(key.key, key.aad_prefix, None)

    def _avro(
        self, path: Path, schema: Schema, rows: list[dict[str, Any]], encrypted: bool
    ) -> bytes | None:
        avro = AvroSchemaConversion().iceberg_to_avro(schema, schema_name="table")
        data = _avro_bytes(_as_java_has_it(avro), rows, {})
        if not encrypted or not self.key_id:
            path.write_bytes(data)
            return None
        return self._ags1(path, data).encode()

    def _parquet(
        self, path: Path, schema: Schema, rows: list[dict[str, Any]], encrypted: bool, version: str
    ) -> bytes | None:
        arrow = schema_to_pyarrow(schema, include_field_ids=True)
        table = pa.Table.from_pylist(rows, schema=arrow)
        encrypted = encrypted and self.key_id is not None
        return self._write(path, schema, table, encrypted, None, data_page_version=version)

    def _write(
        self,
        path: Path,
        schema: Schema,
        table: pa.Table,
        encrypted: bool,
        row_group: int | None,
        **options: Any,
    ) -> bytes | None:
        arrow = schema_to_pyarrow(schema, include_field_ids=True)
        key, aad_prefix = os.urandom(self.bits), os.urandom(16)
        properties = pe.create_encryption_properties(
            key, aad_prefix=aad_prefix, store_aad_prefix=False
        )
        if not encrypted:
            properties = None
        with pq.ParquetWriter(path, arrow, encryption_properties=properties, **options) as out:
            out.write_table(table.cast(arrow), row_group)
        if not encrypted:
            return None
        length = path.stat().st_size if self.lengths else None
        return KeyMetadata(key, aad_prefix, length).encode()

    @staticmethod
    def _identity(schema: Schema, column: str, field_id: int = 1000) -> dict[str, Any]:
        source = schema.find_field(column).field_id
        return {"source-id": source, "field-id": field_id, "name": column, "transform": "identity"}

    @staticmethod
    def _entry(key_id: str, data: bytes, by: str, properties: Any) -> dict[str, Any]:
        told = {
            "key-id": key_id,
            "encrypted-key-metadata": base64.b64encode(data).decode(),
            "encrypted-by-id": by,
        }
        return told if properties is None else {**told, "properties": properties}


def _entry_of(file: File, snapshot: int) -> dict[str, Any]:
    lower = [{"key": key, "value": ends[0]} for key, ends in file.bounds.items()]
    upper = [{"key": key, "value": ends[1]} for key, ends in file.bounds.items()]
    return {
        "status": 1,
        "snapshot_id": snapshot,
        "data_file": {
            "content": file.content,
            "file_path": file.path.as_uri(),
            "file_format": file.form,
            "partition": file.partition,
            "record_count": file.rows,
            "file_size_in_bytes": file.length,
            "lower_bounds": lower,
            "upper_bounds": upper,
            "equality_ids": file.equality,
        },
    }


def _end(kind: Any, values: list[Any], which: Any) -> bytes | None:
    known = [one for one in values if one is not None]
    return to_bytes(kind, which(known)) if known else None


def _avro_type(kind: Any) -> str:
    return "bytes" if isinstance(kind, BinaryType) else str(kind)


def _as_java_has_it(schema: Any) -> Any:
    """PyIceberg's schema, with elements and values that may be null, and maps of strings as Avro's own."""
    if isinstance(schema, list):
        return [_as_java_has_it(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _as_java_has_it(value) for key, value in schema.items()}
    if made.get("type") != "array":
        return made
    if made.get("logicalType") != "map":
        return made | {"items": ["null", made["items"]]}
    key, value = made["items"]["fields"]
    value["type"] = ["null", value["type"]]
    if key["type"] != "string":
        return made
    ids = {"key-id": key["field-id"], "value-id": value["field-id"]}
    return {"type": "map", "values": value["type"], **ids}


def _avro_bytes(schema: Any, rows: list[dict[str, Any]], head: dict[str, str]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec="deflate", metadata=head)
    return out.getvalue()


def _field(number: int, name: str, kind: Any, required: bool = False) -> dict[str, Any]:
    if required:
        return {"name": name, "field-id": number, "type": kind}
    return {"name": name, "field-id": number, "type": ["null", kind], "default": None}


def _map(key: int, value: int, kind: str) -> dict[str, Any]:
    parts = [_field(key, "key", "int", True), _field(value, "value", kind, True)]
    pair = {"type": "record", "name": f"k{key}_v{value}", "fields": parts}
    return {"type": "array", "logicalType": "map", "items": pair}


def _entries(partition: list[dict[str, Any]]) -> dict[str, Any]:
    file = [
        _field(134, "content", "int", True),
        _field(100, "file_path", "string", True),
        _field(101, "file_format", "string", True),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": partition}, True),
        _field(103, "record_count", "long", True),
        _field(104, "file_size_in_bytes", "long", True),
        _field(125, "lower_bounds", _map(126, 127, "bytes")),
        _field(128, "upper_bounds", _map(129, 130, "bytes")),
        _field(131, "key_metadata", "bytes"),
        _field(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}),
    ]
    entry = [
        _field(0, "status", "int", True),
        _field(1, "snapshot_id", "long"),
        _field(3, "sequence_number", "long"),
        _field(4, "file_sequence_number", "long"),
        _field(2, "data_file", {"type": "record", "name": "r2", "fields": file}, True),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": entry}


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _field(509, "contains_null", "boolean", True),
        _field(510, "lower_bound", "bytes"),
        _field(511, "upper_bound", "bytes"),
    ],
}
_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field(500, "manifest_path", "string", True),
        _field(501, "manifest_length", "long", True),
        _field(502, "partition_spec_id", "int", True),
        _field(517, "content", "int", True),
        _field(515, "sequence_number", "long", True),
        _field(516, "min_sequence_number", "long", True),
        _field(503, "added_snapshot_id", "long", True),
        _field(504, "added_files_count", "int", True),
        _field(505, "existing_files_count", "int", True),
        _field(506, "deleted_files_count", "int", True),
        _field(512, "added_rows_count", "long", True),
        _field(513, "existing_rows_count", "long", True),
        _field(514, "deleted_rows_count", "long", True),
        _field(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}),
        _field(519, "key_metadata", "bytes"),
    ],
}
