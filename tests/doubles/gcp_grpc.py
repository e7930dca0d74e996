"""The gRPC side of the Google Cloud KMS double, for Iceberg's own client, which speaks gRPC to Google's address only.

Encrypt and Decrypt over TLS, with the keys of the double, and a proxy that leads a JVM here, whatever address it asks
for.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from google.cloud.kms_v1.types import (
    DecryptRequest,
    DecryptResponse,
    EncryptRequest,
    EncryptResponse,
)
from harness.tls import TestAuthority, pem_of

from doubles.connect import ConnectProxy
from doubles.gcp import GcpKmsDouble
from doubles.gcp_keys import RefusedError

SERVICE = "google.cloud.kms.v1.KeyManagementService"
HOST = "cloudkms.googleapis.com"


@dataclass
class GcpGrpcDouble:
    """Serves the keys of a double by gRPC. `stop` ends it.

    Attributes:
        calls: the methods that were called.
        proxy: it tells what it was asked to connect to.
    """

    double: GcpKmsDouble
    authority: TestAuthority
    calls: list[str] = field(default_factory=list)
    proxy: ConnectProxy = field(default_factory=ConnectProxy)
    _server: Any = None

    def start(self) -> "GcpGrpcDouble":
        pem = self.authority.chain.read_bytes()
        key = pem_of(serialization.load_pem_private_key(pem, None))
        certificate = x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.PEM)
        self._server = grpc.server(ThreadPoolExecutor(2))
        methods = {
            "Encrypt": grpc.unary_unary_rpc_method_handler(
                self._encrypt, EncryptRequest.deserialize, EncryptResponse.serialize
            ),
            "Decrypt": grpc.unary_unary_rpc_method_handler(
                self._decrypt, DecryptRequest.deserialize, DecryptResponse.serialize
            ),
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, methods),)
        )
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        self.proxy.target = self._server.add_secure_port("127.0.0.1:0", credentials)
        self._server.start()
        self.proxy.start()
        return self

    def stop(self) -> None:
        self.proxy.stop()
        self._server.stop(None).wait()

    @property
    def java_options(self) -> list[str]:
        return [*self.authority.java_options, *self.proxy.java_options]

    def _encrypt(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._authorize("Encrypt", context)
        version = self.double.key(request.name).encrypting(None)
        aad = request.additional_authenticated_data
        return EncryptResponse(
            name=version.name, ciphertext=version.encrypt(request.plaintext, aad)
        )

    def _decrypt(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._authorize("Decrypt", context)
        version = self.double.key(request.name).decrypting(request.ciphertext)
        aad = request.additional_authenticated_data
        try:
            return DecryptResponse(plaintext=version.decrypt(request.ciphertext, aad))
        except RefusedError as refused:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refused))

    def _authorize(self, method: str, context: grpc.ServicerContext) -> None:
        self.calls.append(method)
        metadata = dict(context.invocation_metadata())
        if self.double.login.account_of(str(metadata.get("authorization"))) is None:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no login")
