"""A double of a REST catalog: it answers as Iceberg's REST specification has it, with the documents it is given."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from doubles.served import Served, Silent


def _changed(document: dict[str, Any], change: dict[str, Any]) -> None:
    """Make a change, as the REST specification names them."""
    lists = {
        "add-schema": ("schemas", "schema"),
        "add-spec": ("partition-specs", "spec"),
        "add-sort-order": ("sort-orders", "sort-order"),
        "add-encryption-key": ("encryption-keys", "encryption-key"),
        "add-snapshot": ("snapshots", "snapshot"),
    }
    action = change["action"]
    if action in lists:
        into, what = lists[action]
        document[into].append(change[what])
    if action == "assign-uuid":
        document["table-uuid"] = change["uuid"]
    elif action == "upgrade-format-version":
        document["format-version"] = change["format-version"]
    elif action == "set-location":
        document["location"] = change["location"]
    elif action == "set-properties":
        document["properties"] |= change["updates"]
    elif action == "add-schema":
        document["last-column-id"] = max(one["id"] for one in change["schema"]["fields"])
    elif action == "add-snapshot":
        document["last-sequence-number"] = change["snapshot"]["sequence-number"]
        if document["format-version"] > 2:
            document["next-row-id"] += change["snapshot"]["added-rows"]
    elif action == "set-current-schema":
        document["current-schema-id"] = document["schemas"][-1]["schema-id"]
    elif action == "set-snapshot-ref":
        told = {"snapshot-id": change["snapshot-id"], "type": change["type"]}
        document["refs"][change["ref-name"]] = told
        document["current-snapshot-id"] = document["refs"]["main"]["snapshot-id"]


class _Handler(Silent):
    double: RestCatalogDouble

    def do_GET(self) -> None:  # noqa: N802
        path, _, self.double.query = self.path.partition("?")
        self.double.asked.append(path)
        self._say(*self.double.answer(path))

    def do_POST(self) -> None:  # noqa: N802
        double = self.double
        double.asked.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        first, double.first = double.first, None
        if first:
            first()
        status, answer = double.changed(self.path, body)
        then, double.then = double.then, None
        after = then() if then else double.after
        self._say(*((status, answer) if status != 200 else (after, answer)))

    def _say(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class RestCatalogDouble(Served):
    """A server on a port of its own.

    Attributes:
        tables: its tables, by namespace and name: where the metadata file is, and the metadata.
        asked: the paths that were asked for.
        query: what was asked for last, behind the path.
        kept: what of a new table's or a commit's changes it keeps.
        after: what it answers, with this status, after it made a change; 200 is the truth.
        first: what happens once before the next change.
        then: what happens once after the next change; its answer has the status that this returns.
        heads_only: whether it tells only of snapshots that branches and tags have.
        told_all: whether it then tells of all to who asks for all.
        overrides: properties that it gives its clients.
        config: properties that it gives with a table.
    """

    handler = _Handler

    def __init__(self) -> None:
        self.tables: dict[str, tuple[str, dict[str, Any]]] = {}
        self.endpoints: list[str] = []
        self.asked: list[str] = []
        self.kept: Callable[[dict[str, Any]], bool] = lambda change: True
        self.after = 200
        self.first: Callable[[], object] | None = None
        self.then: Callable[[], int] | None = None
        self.heads_only = False
        self.told_all = False
        self.query = ""
        self.overrides: dict[str, str] = {}
        self.config: dict[str, str] = {}

    def changed(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        _, _, rest = path.partition("/v1/namespaces/")
        namespace, _, table = rest.partition("/tables")
        name = f"{namespace}.{table.strip('/') or body['name']}"
        if not table:
            return 200, {"metadata": self._staged(body), "config": {}}
        _, document = self.tables.get(name, ("", None))
        for one in body["requirements"]:
            has = (document or {}).get("refs", {}).get(one.get("ref"), {}).get("snapshot-id")
            if (one["type"] == "assert-create" and document) or (
                one["type"] == "assert-ref-snapshot-id" and has != one["snapshot-id"]
            ):
                error = {"message": "not met", "type": "CommitFailedException", "code": 409}
                return 409, {"error": error}
        document = copy.deepcopy(document) if document else self._staged({})
        for change in filter(self.kept, body["updates"]):
            _changed(document, change)
        location = f"{document['location']}/metadata/{len(self.asked):05d}-double.metadata.json"
        Path(location.removeprefix("file://")).parent.mkdir(parents=True, exist_ok=True)
        Path(location.removeprefix("file://")).write_text(json.dumps(document))
        self.tables[name] = (location, document)
        return 200, {"metadata-location": location, "metadata": document}

    @staticmethod
    def _staged(body: dict[str, Any]) -> dict[str, Any]:
        return {
            "format-version": int(body.get("properties", {}).get("format-version", 1)),
            "table-uuid": str(uuid.uuid4()),
            "location": body.get("location"),
            "last-sequence-number": 0,
            "last-updated-ms": 0,
            "last-column-id": len(body.get("schema", {}).get("fields", [])),
            "current-schema-id": 0,
            "schemas": [body["schema"]] if "schema" in body else [],
            "default-spec-id": 0,
            "partition-specs": [body["partition-spec"]] if "schema" in body else [],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [body["write-order"]] if "schema" in body else [],
            "properties": {
                k: v for k, v in body.get("properties", {}).items() if k != "format-version"
            },
            "next-row-id": 0,
            "encryption-keys": [],
            "refs": {},
            "snapshots": [],
        }

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        if path == "/v1/config":
            settings = {"defaults": {}, "overrides": self.overrides}
            return 200, settings | ({"endpoints": self.endpoints} if self.endpoints else {})
        _, _, rest = path.partition("/v1/namespaces/")
        namespace, _, table = rest.partition("/tables/")
        found = self.tables.get(f"{namespace}.{table}")
        if found is None:
            error = {"message": "no such table", "type": "NoSuchTableException", "code": 404}
            return 404, {"error": error}
        metadata = found[1]
        if self.heads_only and not (self.told_all and self.query == "snapshots=all"):
            heads = {one["snapshot-id"] for one in metadata["refs"].values()}
            told = [one for one in metadata["snapshots"] if one["snapshot-id"] in heads]
            metadata = {**metadata, "snapshots": told}
        return 200, {
            "metadata-location": found[0],
            "metadata": metadata,
            "config": self.config,
        }
