"""A proxy before an HTTP server, that does to the traffic what networks and overloaded servers do."""

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Status = tuple[Literal["status"], int, dict[str, str], bytes | str]
Mode = Literal["pass", "down", "slow", "hang", "reset", "refused", "lost"] | Status

SLOW_SECONDS = 0.2
# They concern one connection, not the message; Java's client asks for HTTP/2 with them.
_HOP_BY_HOP = {
    *("connection", "keep-alive", "transfer-encoding", "upgrade", "http2-settings"),
    "expect",  # which the handler answers
}


class FaultProxy:
    """Passes requests to a server on 127.0.0.1, or fails them.

    Modes:
        pass: as if there were no proxy.
        down: connections are refused.
        slow: each answer comes 200 ms late.
        hang: requests are taken and not answered, until the mode changes.
        reset: half of the answer, then the connection is reset.
        refused: the connection is reset; the server is not asked.
        lost: the server does it, and the connection is reset before the answer.
        ("status", 429, {"Retry-After": "1"}, body): this answer; the server is not asked.

    Attributes:
        port: where to connect to, on 127.0.0.1.
        mode: what happens to each request.
        only: the mode concerns requests whose path has this text in it; others pass.
        next: modes of the next requests, one each, before `mode` counts again; not "down".
        rule: says the mode of a request by its method and path and its body, in place of `mode`; not "down".
        requests: the method and path of each request that came.
        headers: and its headers, names in lower case.
        bodies: and its body.
    """

    def __init__(self, target_port: int, tls: ssl.SSLContext | None = None) -> None:
        """Nothing listens yet.

        Args:
            target_port: of the server, which speaks plain HTTP.
            tls: the proxy speaks TLS to its clients with this; without it plain HTTP.
        """
        self.port = 0
        self.only = ""
        self.next: list[Mode] = []
        self.rule: Callable[[str, bytes], Mode] | None = None
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self._target_port = target_port
        self._tls = tls
        self._mode: Mode = "pass"
        self._changed = threading.Event()  # of the mode that hanging requests wait in
        self._server: _Server | None = None

    def start(self) -> "FaultProxy":
        self._listen()
        return self

    def stop(self) -> None:
        self._changed.set()
        self._close()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        released, self._changed = self._changed, threading.Event()
        released.set()
        if mode == "down":
            self._close()
        elif self._server is None:
            self._listen()

    def forget(self) -> None:
        """Forgets the requests seen."""
        for seen in (self.requests, self.headers, self.bodies):
            seen.clear()

    def _listen(self) -> None:
        self._server = _Server(("127.0.0.1", self.port), self, self._tls)
        self.port = self._server.server_port
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def _close(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()
            server.drop_connections()

    def take(self, request: "_Handler", body: bytes) -> Mode:
        """Notes a request and says what becomes of it; waits where that is its fault."""
        asked = f"{request.command} {request.path}"
        self.requests.append(asked)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(body)
        mode, changed = self.next.pop(0) if self.next else self._mode, self._changed
        if self.rule is not None:
            mode = self.rule(asked, body)
        if self.only not in request.path:
            mode = "pass"
        if mode == "slow":
            time.sleep(SLOW_SECONDS)
        if mode == "hang":
            changed.wait()
        return mode

    def ask(self, request: "_Handler", body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Passes a request to the server."""
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        connection = HTTPConnection("127.0.0.1", self._target_port, timeout=60)
        try:
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, address: tuple[str, int], proxy: FaultProxy, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(address, _Handler)
        self.proxy = proxy
        self._tls = tls
        self._connections: set[socket.socket] = set()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Runs in the connection's own thread: a slow TLS handshake keeps nobody else waiting."""
        connection = self._tls.wrap_socket(request, server_side=True) if self._tls else request
        self._connections.add(connection)
        try:
            super().finish_request(connection, client_address)
        finally:
            self._connections.discard(connection)
            if self._tls:
                self.shutdown_request(connection)

    def drop_connections(self) -> None:
        """Ends connections that clients keep open for later, whatever a thread waits for on them."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: connections that break are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mode = self.server.proxy.take(self, body)
        if mode in ("hang", "refused"):
            self._reset()
        elif isinstance(mode, tuple):
            _, status, headers, answer = mode
            self._send(
                status,
                list(headers.items()),
                answer.encode() if isinstance(answer, str) else answer,
            )
        else:
            status, sent, answer = self.server.proxy.ask(self, body)
            if mode == "lost":
                self._reset()
                return
            self._send(status, sent, answer, cut=mode == "reset")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_LIST = _handle  # noqa: N815

    def _send(
        self, status: int, headers: list[tuple[str, str]], body: bytes, cut: bool = False
    ) -> None:
        self.send_response_only(status)
        length = {"content-length"} if self.command != "HEAD" else set()  # there, of what GET sends
        for name, value in headers:
            if name.lower() not in _HOP_BY_HOP | length:
                self.send_header(name, value)
        if length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if cut:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self._reset()
        elif self.command != "HEAD":
            self.wfile.write(body)

    def _reset(self) -> None:
        self.close_connection = True
        reset(self.connection)

    def log_message(self, *args: Any) -> None:
        """Silent: tests look at `requests`."""


def reset(connection: socket.socket) -> None:
    """Ends a connection as a crashed peer does (RST, no FIN) as soon as its handler returns."""
    with suppress(OSError):  # it has ended by itself
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
