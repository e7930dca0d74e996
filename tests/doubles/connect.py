"""An HTTP proxy as companies have it: it opens tunnels (CONNECT), and may ask for a login before."""

import select
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class ConnectProxy:
    """Opens tunnels to ports of 127.0.0.1, whatever host is asked for.

    Attributes:
        port: where it listens, on 127.0.0.1.
        asked: "host:port" of each tunnel that was asked for.
        wants_login: each gets a 407 instead.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.wants_login = False
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_CONNECT(self) -> None:
                proxy.asked.append(self.path)
                self.close_connection = True
                if proxy.wants_login:
                    self.send_response(407)
                    self.send_header("Proxy-Authenticate", 'Basic realm="out"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return

                target = ("127.0.0.1", int(self.path.rpartition(":")[2]))
                with socket.create_connection(target) as server:
                    self.send_response(200)
                    self.end_headers()
                    _pass_on(self.connection, server)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port = self._server.server_port

    def start(self) -> "ConnectProxy":
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def java_options(self) -> list[str]:
        """For a JVM that uses it."""
        return [
            "-Dhttps.proxyHost=127.0.0.1",
            f"-Dhttps.proxyPort={self.port}",
            "-Dhttp.nonProxyHosts=direct.example",
        ]


def _pass_on(client: socket.socket, server: socket.socket) -> None:
    other = {client: server, server: client}
    while True:
        for ready in select.select(list(other), [], [])[0]:
            try:
                data = ready.recv(65536)
                other[ready].sendall(data)
            except OSError:
                return

            if not data:
                return
