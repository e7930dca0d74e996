"""A double of a REST catalog: it answers as Iceberg's REST specification has it, with the documents it is given."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RestCatalogDouble:
    """A server on a port of its own.

    Attributes:
        tables: its tables, by namespace and name: where the metadata file is, and the metadata.
        asked: the paths that were asked for.
    """

    def __init__(self) -> None:
        self.tables: dict[str, tuple[str, dict[str, Any]]] = {}
        self.endpoints: list[str] = []
        self.asked: list[str] = []
        self.uri = ""

    @contextmanager
    def running(self) -> Iterator[RestCatalogDouble]:
        """Serve until the block ends."""
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                double.asked.append(path)
                status, answer = double.answer(path)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self) -> None:
                double.asked.append(self.path)
                self.send_error(500)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        if path == "/v1/config":
            told = {"defaults": {}, "overrides": {}}
            return 200, told | ({"endpoints": self.endpoints} if self.endpoints else {})
        _, _, rest = path.partition("/v1/namespaces/")
        namespace, _, table = rest.partition("/tables/")
        found = self.tables.get(f"{namespace}.{table}")
        if found is None:
            error = {"message": "no such table", "type": "NoSuchTableException", "code": 404}
            return 404, {"error": error}
        return 200, {"metadata-location": found[0], "metadata": found[1], "config": {}}
