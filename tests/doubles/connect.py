"""An HTTP proxy as companies have it: it opens tunnels (CONNECT), and may ask for a login before."""

import select
import socket

from doubles.served import Served, Silent


class _Handler(Silent):
    def do_CONNECT(self) -> None:  # noqa: N802
        self.double.asked.append(self.path)
        self.close_connection = True
        if self.double.wants_login:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="out"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return

        port = self.double.target or int(self.path.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as server:
            self.send_response(200)
            self.end_headers()
            _pass_on(self.connection, server)


class ConnectProxy(Served):
    """Opens tunnels to ports of 127.0.0.1, whatever host is asked for.

    Attributes:
        asked: "host:port" of each tunnel that was asked for.
        wants_login: each gets a 407 instead.
        target: the port to which all lead; 0: the one that is asked for.
    """

    handler = _Handler

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.wants_login = False
        self.target = 0

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
