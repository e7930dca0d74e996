"""Tokens of Kubernetes service accounts, and a double of the API that Vault asks about them (TokenReview)."""

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

NAMESPACE = "data"
ACCOUNT = "spark"
SUBJECT = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
UID = "c6b0a1de-9b4c-4a55-8d8e-3a3f4c5a9a11"
AUDIENCE = "vault"
ISSUER = "https://kubernetes.default.svc.cluster.local"


class Issuer:
    """Signs tokens as a cluster does (RS256).

    Attributes:
        public_key: PEM, for a Vault that checks them by itself.
        deleted: tokens that the cluster no longer takes.
    """

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.public_key = (
            self._key.public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            .decode()
        )
        self.deleted: set[str] = set()
        self._made = 0

    def token(self, *, audience: str = AUDIENCE, seconds: float = 600, **claims: Any) -> str:
        """A token that no other is like. `sub=...`"""
        self._made += 1
        now = int(time.time())
        body = {
            "iss": ISSUER,
            "sub": SUBJECT,
            "aud": [audience],
            "iat": now - 60,
            "nbf": now - 60,
            "exp": int(now + seconds),
            "jti": str(self._made),
            "kubernetes.io": {
                "namespace": NAMESPACE,
                "serviceaccount": {"name": ACCOUNT, "uid": UID},
            },
            **claims,
        }
        signed = f"{_part({'alg': 'RS256', 'kid': 'test'})}.{_part(body)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    def review(self, token: str, audiences: list[str]) -> dict[str, Any]:
        """What the API server says of a token: the `status` of a TokenReview."""
        signed, _, signature = token.rpartition(".")
        try:
            self._key.public_key().verify(
                _bytes(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except Exception:  # noqa: BLE001 (whatever is wrong with it)
            return {"authenticated": False, "error": "invalid bearer token"}
        claims = json.loads(_bytes(signed.partition(".")[2]))
        if claims["exp"] < time.time() or token in self.deleted:
            return {"authenticated": False, "error": "token has expired or was deleted"}
        return {
            "authenticated": True,
            "audiences": [name for name in audiences if name in claims["aud"]] or claims["aud"],
            "user": {"username": claims["sub"], "uid": UID},
        }


class TokenReviews:
    """The double: an API server that reviews the issuer's tokens and does nothing else, over TLS on 127.0.0.1.

    Attributes:
        broken: it answers 503.
        reviewed: how many tokens it was asked about.
    """

    def __init__(self, issuer: Issuer, tls: ssl.SSLContext) -> None:
        self.broken = False
        self.reviewed = 0
        reviews = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reviews.reviewed += 1
                found = self.path == "/apis/authentication.k8s.io/v1/tokenreviews"
                status = 503 if reviews.broken else 201 if found else 404
                spec = asked["spec"]
                answer = {
                    "apiVersion": "authentication.k8s.io/v1",
                    "kind": "TokenReview",
                    "metadata": {},
                    "status": issuer.review(spec["token"], spec.get("audiences") or []),
                }
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *args: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _part(claims: dict[str, Any]) -> str:
    return _base64(json.dumps(claims).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
