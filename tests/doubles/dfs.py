"""The two requests of Azure's Data Lake endpoint that ADLSFileIO makes and Azurite does not know, before an Azurite.

Azurite has the Blob endpoint alone (Azure/Azurite#553), which answers all that reads, writes and deletes single files.
It lists no folder (`GET /container?resource=filesystem`), and deletes none (`DELETE /container/folder?recursive=true`).
"""

import json
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from azure.storage.blob import ContainerClient

from doubles.faults import FaultProxy

_EPOCH = datetime(1601, 1, 1, tzinfo=timezone.utc)  # of Windows' file times


class DfsFront(FaultProxy):
    """Answers those two itself, from the container of blobs, and passes all others."""

    def __init__(self, target_port: int, container: ContainerClient) -> None:
        super().__init__(target_port)
        self._container = container

    def ask(self, request: Any, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        address = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if request.command == "GET" and query.get("resource") == "filesystem":
            return self._list(query.get("directory", ""))
        if request.command == "DELETE" and query.get("recursive") == "true":
            return self._delete(unquote(address.path.split("/", 3)[3]))
        return super().ask(request, body)

    def _list(self, folder: str) -> tuple[int, list[tuple[str, str]], bytes]:
        """Files and folders below a folder, each by its name in the container, as a hierarchical namespace has them."""
        start = f"{folder.strip('/')}/".lstrip("/")
        files = list(self._container.list_blobs(name_starts_with=start))
        if not files:
            return _error(404, "PathNotFound")
        folders = {
            "/".join(parts[:depth])
            for file in files
            for parts in [file.name.split("/")]
            for depth in range(start.count("/") + 1, len(parts))
        }
        found: list[dict[str, str]] = [
            {"name": name, "isDirectory": "true", "creationTime": "0"} for name in sorted(folders)
        ]
        for file in files:
            age = file.creation_time - _EPOCH
            found.append(
                {
                    "name": file.name,
                    "contentLength": str(file.size),
                    "creationTime": str(int(age.total_seconds() * 10**7)),
                }
            )
        answer = json.dumps({"paths": found}).encode()
        return 200, [("Content-Type", "application/json")], answer

    def _delete(self, folder: str) -> tuple[int, list[tuple[str, str]], bytes]:
        names = [
            file.name
            for file in self._container.list_blobs(name_starts_with=f"{folder.rstrip('/')}/")
        ]
        for name in names:
            self._container.delete_blob(name)
        return (200, [], b"") if names else _error(404, "PathNotFound")


def _error(status: int, code: str) -> tuple[int, list[tuple[str, str]], bytes]:
    body = json.dumps({"error": {"code": code, "message": "as Azure's Data Lake says it"}})
    return (
        status,
        [("x-ms-error-code", code), ("Content-Type", "application/json")],
        body.encode(),
    )
