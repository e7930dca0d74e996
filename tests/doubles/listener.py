"""Someone else's address, given to a session as its Vault."""

from doubles.served import Served, Silent


class _Handler(Silent):
    def do_GET(self) -> None:  # noqa: N802
        self._answer(200, b'{"initialized": true, "sealed": false, "standby": false}')

    def do_POST(self) -> None:  # noqa: N802
        self.double.tokens.append(self.headers["X-Vault-Token"])
        self._answer(403, b'{"errors": ["permission denied"]}')

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Listener(Served):
    """Keeps the Vault tokens that come."""

    handler = _Handler

    def __init__(self) -> None:
        self.tokens: list[str] = []
