"""What the tests of the Google Cloud KMS client have at hand."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.jvm import Client, Jvm
from harness.refused import refused
from harness.tls import TestAuthority

from doubles.faults import FaultProxy
from doubles.gcp import GcpKmsDouble
from pyspark_iceberg_crypto import IcebergCryptoError

DEK = b"0123456789abcdef"
SECRETS = ("only-for-tests", "PRIVATE KEY")
NAMED = "Google Cloud KMS at http://127.0.0.1:"


@dataclass
class GcpWorld:
    """A JVM, the double with a key in it, and the properties of a client that is logged in."""

    jvm: Jvm
    double: GcpKmsDouble
    key: str
    properties: dict[str, str]
    authority: TestAuthority
    faults: Callable[..., FaultProxy]
    folder: Path

    def client(self, *, raw: bool = True, **changes: object) -> Client:
        """Another one, of which some of `encryption.kms.gcp.` are other; raw: without cache and retries."""
        named = {
            f"encryption.kms.gcp.{name.replace('_', '-')}": str(v) for name, v in changes.items()
        }
        return self.jvm.client(self.properties | named, raw=raw)

    def refuses(
        self, kind: type[IcebergCryptoError], client: Client, *words: str
    ) -> IcebergCryptoError:
        """A wrap fails with this type, names KMS and key, says these words, and shows no secret."""
        call = lambda: client.wrap(DEK, self.key)  # noqa: E731
        return refused(kind, call, NAMED, self.key, *words, secrets=SECRETS)
