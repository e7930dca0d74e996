"""What the doubles that speak HTTP have in common."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, TypeVar

T = TypeVar("T", bound="Served")


class Silent(BaseHTTPRequestHandler):
    """A handler of a double's requests that writes no log: tests look at what it answers."""

    double: Any

    def log_message(self, *args: Any) -> None:
        """Nothing."""


class Served:
    """Listens on 127.0.0.1 from `start` to `stop`.

    Attributes:
        port: where.
    """

    handler: ClassVar[type[Silent]]
    port: int = 0

    def start(self: T) -> T:
        handler = type("Handler", (self.handler,), {"double": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"
