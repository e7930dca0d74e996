"""Writes pyspark_iceberg_crypto/schemas/output-1.json: the JSON of each command, from the classes that it shows.

Usage: python dev/output_schemas.py. A test compares the file with what this would write. Within version 1 members
may be added; none goes, and none changes its meaning.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
import types
import typing
from pathlib import Path
from typing import Any

from pyspark_iceberg_crypto import (
    DecryptReport,
    EncryptReport,
    KeyInfo,
    KeysReport,
    KeyVersionsReport,
    PruneReport,
    PurgeReport,
    ReencryptReport,
    RepairReport,
    RotateCatalogReport,
    RotateKekReport,
    RotateMasterKeyReport,
    RotateParquetReport,
)
from pyspark_iceberg_crypto.doctor import DoctorReport
from pyspark_iceberg_crypto.reports._readers import ReadersReport
from pyspark_iceberg_crypto.reports._report import Changed
from pyspark_iceberg_crypto.schemas import OUTPUT, report_schema
from pyspark_iceberg_crypto.verbs.inspection import FileInspection

FILE = Path(__file__).resolve().parents[1] / "pyspark_iceberg_crypto" / "schemas" / OUTPUT
WIDTH = 200
TEXT, TEXTS = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Schemas:
    """The definitions so far."""

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}

    def ref(self, kind: type, **more: Any) -> dict[str, str]:
        """Define a dataclass; more: members that its to_dict adds, or has of another form."""
        if kind.__name__ not in self.defs:
            self.defs[kind.__name__] = {}
            self.defs[kind.__name__] = self._class(kind, more)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def _class(self, kind: type, more: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, str] = {}
        for base in reversed(kind.__mro__):
            told |= attributes(base)
        hints = typing.get_type_hints(kind)
        fields = [field for field in dataclasses.fields(kind) if field.name not in more]
        properties = {"ok": {"type": "boolean"}} if hasattr(kind, "ok") else {}
        for field in fields:
            properties[field.name] = self._type(hints[field.name])
            if field.name in told:
                properties[field.name] = {**properties[field.name], "description": told[field.name]}
        required = [name for name in properties if kind is not FileInspection or name in ALWAYS]
        return {
            "title": (inspect.getdoc(kind) or "").splitlines()[0],
            "type": "object",
            "required": required,
            "properties": {**properties, **{name: one for name, one in more.items() if one}},
        }

    def _type(self, hint: Any) -> dict[str, Any]:
        if hint in SIMPLE:
            return {"type": SIMPLE[hint]}
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return {"enum": [one.value for one in hint]}
        if dataclasses.is_dataclass(hint):
            return self.ref(typing.cast(type, hint))
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is list:
            return {"type": "array", "items": self._type(inner[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self._type(inner[1])}
        assert origin in (typing.Union, types.UnionType), hint
        kinds = [self._type(one) for one in inner]
        if all(set(one) == {"type"} for one in kinds):
            return {"type": [one["type"] for one in kinds]}
        return {"anyOf": kinds}


# What is known of every file; the rest is there where it is known.
ALWAYS = ("path", "length", "magic", "format", "encrypted")


def attributes(kind: type) -> dict[str, str]:
    """Read the section Attributes of a docstring."""
    text = (inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]).partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {6,}.*)*)", text, re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in found}


def output() -> dict[str, Any]:
    """Make the document."""
    made = Schemas()
    made.defs["error"] = thing(
        "Why it could not be done; the exit code is 2, or 64 if the command is wrong.",
        error={**TEXT, "description": "Its type, such as KeyNotFoundError."},
        problem=TEXT,
        hint=TEXT,
        url={
            "type": ["string", "null"],
            "description": "Where the errors of this type are explained; null for those of other programs.",
        },
    )
    made.defs["left"] = thing(
        "A table of several that it could not be done to.", table=TEXT, problem=TEXT, hint=TEXT
    )
    made.defs["skipped"] = thing("A table of many that it is not for.", table=TEXT, skipped=TEXT)
    inspected = made.ref(FileInspection)
    made.defs["FileInspection"]["properties"] |= {
        "problem": TEXT,
        "hint": TEXT,
        "unchecked": {
            "type": "boolean",
            "description": "With a problem: nothing is known of the file.",
        },
    }
    made.defs["not_inspected"] = thing(
        "A file of which nothing is told but a problem.",
        path=TEXT,
        problem=TEXT,
        hint=TEXT,
        unchecked={"type": "boolean"},
    )
    files = [inspected, {"$ref": "#/$defs/not_inspected"}]
    key = made.ref(KeyInfo)
    diagnosis = made.ref(DoctorReport)
    made.defs["DoctorReport"]["required"].remove("tables")
    made.ref(KeyVersionsReport)
    made.defs["MasterKeyVersions"]["properties"]["not_needed"] = {
        "type": "array",
        "items": {"type": "integer"},
        "description": "Versions that none of these tables needs.",
    }
    verified = {"$ref": report_schema()["$id"]}
    genuine = thing(
        "A report that is as it was signed.",
        genuine={"const": True},
        key_id=TEXT,
        algorithm=TEXT,
        signed_at=TEXT,
        report=verified,
    )
    altered = thing("A report that is not.", genuine={"const": False}, problem=TEXT, hint=TEXT)

    def of_tables(*kinds: type) -> list[dict[str, Any]]:
        one = [made.ref(kind) for kind in kinds]
        not_done = [{"$ref": "#/$defs/left"}, {"$ref": "#/$defs/skipped"}]
        return [*one, {"type": "array", "items": {"anyOf": [*one, *not_done]}}]

    commands: dict[str, list[dict[str, Any]]] = {
        "demo": [
            thing(
                "The demo ran, and found what it must.",
                done={"const": True},
                folder={"type": ["string", "null"], "description": "Where all is; null: removed."},
            )
        ],
        "cat": [
            {
                "title": "Rows, by the names of their columns.",
                "type": "array",
                "items": {"type": "object"},
            }
        ],
        "decrypt": of_tables(DecryptReport, Changed),
        "doctor": [diagnosis],
        "encrypt": of_tables(EncryptReport),
        "inspect": [*files, {"type": "array", "items": {"anyOf": files}}],
        "jar": [thing("Where the jar is.", jar=TEXT)],
        "keys": of_tables(KeysReport, KeyVersionsReport),
        "kms create-key": [
            thing("A new key, and what Spark needs for it.", key=key, properties=TEXTS, policy=TEXT)
        ],
        "kms describe-key": [key],
        "kms list-keys": [{"type": "array", "items": key}],
        "kms policy": [thing("A policy.", policy=TEXT, key_ids={"type": "array", "items": TEXT})],
        "kms rotate-key": [key],
        "prune": of_tables(PruneReport),
        "purge": of_tables(PurgeReport),
        "reencrypt": of_tables(ReencryptReport),
        "readers": [made.ref(ReadersReport)],
        "repair": of_tables(RepairReport),
        "report check": [genuine, altered],
        "rotate": of_tables(RotateMasterKeyReport, RotateKekReport, RotateCatalogReport),
        "rotate-parquet": [made.ref(RotateParquetReport), made.ref(Changed)],
        "verify": [verified],
    }
    error = {"$ref": "#/$defs/error"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "commands": {name: {"anyOf": [*kinds, error]} for name, kinds in commands.items()},
        "$defs": dict(sorted(made.defs.items())),
    }


def thing(title: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object all of whose members are required."""
    return {
        "title": title,
        "type": "object",
        "required": [*properties],
        "properties": properties,
    }


def laid_out(value: Any, indent: str = "") -> str:
    """Write JSON with a property a line: what holds nothing nested is on one, and what is short."""
    whole = json.dumps(value)
    is_map = isinstance(value, dict)
    inner = list(value.values() if is_map else value) if isinstance(value, dict | list) else []
    nested = any(isinstance(one, dict | list) for one in inner)
    if not nested or len(indent) + len(whole) < WIDTH:
        return whole
    deeper = f"{indent} "
    names = [f"{json.dumps(name)}: " for name in value] if is_map else [""] * len(inner)
    lines = [name + laid_out(one, deeper) for name, one in zip(names, inner, strict=True)]
    start, end = "{}" if is_map else "[]"
    return f"{start}\n{deeper}" + f",\n{deeper}".join(lines) + f"\n{indent}{end}"


if __name__ == "__main__":
    FILE.write_text(laid_out(output()) + "\n", encoding="utf-8")
