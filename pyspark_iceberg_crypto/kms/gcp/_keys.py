"""Keys wrapped and unwrapped by Google Cloud KMS; in Java these are ``GcpKeys`` and ``GcpErrors``."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import _blob
from pyspark_iceberg_crypto.kms._client import MasterKeys, require_table
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule
from pyspark_iceberg_crypto.kms._secrets import require_private
from pyspark_iceberg_crypto.kms.gcp._errors import ERRORS

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms.gcp._gcp import GcpKms

_SETTING = "encryption.kms.gcp.additional-authenticated-data=table-uuid"
_SECRETS = ("private_key", "client_secret", "refresh_token")


def _read(error: Any) -> tuple[Sequence[str], str]:
    """Two statuses have several meanings, which only the message tells apart."""
    codes, said = ERRORS.read(error)
    if {"INVALID_ARGUMENT", "FAILED_PRECONDITION"} & set(codes):
        named = {"purpose": "purpose", "checksum": "checksum"}
        codes = [code for word, code in named.items() if word in said] + list(codes)
    return codes, said


_RULES = [
    Rule(
        "checksum",
        KmsUnavailableError,
        "if it happens again, look for a proxy between here and Cloud KMS that changes requests",
        "{kms} got a damaged request for key '{subject}': {said}",
    ),
    Rule(
        "purpose",
        NotSupportedError,
        "use a key with the purpose ENCRYPT_DECRYPT",
        "{kms} cannot wrap with key '{subject}': {said}",
    ),
    Rule(
        "UNAVAILABLE INTERNAL DEADLINE_EXCEEDED ABORTED",
        KmsUnavailableError,
        "see Google Cloud's status page; for an external key, its key manager",
        "{kms} is not available for key '{subject}': {said}",
    ),
    Rule(
        "PERMISSION_DENIED",
        AccessDeniedError,
        "grant cloudkms.cryptoKeyVersions.useTo{operation} on the key to this login (driver_policy prints how), and "
        "check the key's name: Cloud KMS says the same for a key that does not exist",
        "{kms} does not let this login use key '{subject}': {said}",
    ),
]
WRAPPING = ERRORS.overruled(
    [
        *_RULES,
        Rule(
            "INVALID_ARGUMENT",
            ConfigurationError,
            "check the key's name and its location, and that the endpoint serves that location",
            "{kms} cannot wrap with key '{subject}': {said}",
        ),
    ],
    _read,
)
UNWRAPPING = ERRORS.overruled(
    [
        *_RULES,
        Rule(
            "INVALID_ARGUMENT",
            BadWrappedKeyError,
            "the wrapped key was changed, or another key or KMS wrapped it, or it was wrapped with other additional "
            "authenticated data, or none: see additional_authenticated_data",
            "{kms} cannot unwrap with key '{subject}': {said}",
        ),
    ],
    _read,
)


class GcpKeys(MasterKeys):
    """The master keys of Cloud KMS. A wrapped key is its ciphertext, as Iceberg's client has it.

    Checksums (CRC32C) go with everything sent and are checked on everything received; a key that was damaged on its
    way counts as `KmsUnavailableError`, for the next attempt may get through whole.
    """

    def __init__(self, kms: GcpKms, call_seconds: float) -> None:
        self._kms = kms
        self._seconds = call_seconds
        self._lock = threading.Lock()
        self._client: Any = None

    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.wrap`."""
        name = self._kms._key(key_id)[
            "given"
        ]  # the key's full name, with its version if one was given
        request = {"name": name, **_field("plaintext", key), **self._bound(key_id, table)}
        answer = self._ask("encrypt", request, key_id, WRAPPING)
        ciphertext = self._checked(answer, "ciphertext", key_id)
        verified = answer.verified_plaintext_crc32c and (
            "additional_authenticated_data" not in request
            or answer.verified_additional_authenticated_data_crc32c
        )
        if not verified:
            raise self._damaged("did not confirm the checksum of what it was to wrap", key_id)
        return ciphertext

    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.unwrap`."""
        name = self._kms._key(key_id)["name"]  # Cloud KMS decrypts by the key's name alone
        _blob.require_bare(wrapped, "gcp", key_id, self._kms._name)
        request = {"name": name, **_field("ciphertext", wrapped), **self._bound(key_id, table)}
        return self._checked(self._ask("decrypt", request, key_id, UNWRAPPING), "plaintext", key_id)

    def close(self) -> None:
        """See `MasterKeys.close`."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.transport.close()

    def _bound(self, key_id: str, table: str | None) -> dict[str, Any]:
        choice = self._kms.additional_authenticated_data
        if choice == "key-id":
            return _field("additional_authenticated_data", self._kms._key(key_id)["name"].encode())
        if choice == "table-uuid":
            return _field("additional_authenticated_data", require_table(table, _SETTING).encode())
        return {}

    def _ask(self, method: str, request: dict[str, Any], key_id: str, errors: ErrorTable) -> Any:
        try:
            with errors.typed(
                f"{self._kms._name} did not {method} with key '{key_id}'",
                kms=self._kms._name,
                subject=key_id,
                operation=method.capitalize(),
            ):
                return getattr(self._made(), method)(
                    request=request,
                    retry=None,  # CachedKms tries again
                    timeout=self._seconds,
                )
        except LoginFailedError:
            with self._lock:
                self._client = None  # the credentials are read again the next time
            raise

    def _made(self) -> Any:
        with self._lock:
            if self._client is None:
                if self._kms.credentials_file is not None:
                    _require_private(Path(self._kms.credentials_file))
                self._client = self._kms._client()
            return self._client

    def _checked(self, answer: Any, field: str, key_id: str) -> bytes:
        """Return a field of bytes, found whole by the checksum beside it."""
        value: bytes = getattr(answer, field)
        if not value:
            raise ConfigurationError(
                f"{self._kms._name} answered for key '{key_id}' without a {field}: it is not Cloud KMS",
                "check the endpoint, and any proxy on the way there",
            )
        if getattr(answer, f"{field}_crc32c") != crc32c(value):
            raise self._damaged(f"answered with a {field} that does not fit its checksum", key_id)
        return value

    def _damaged(self, what: str, key_id: str) -> KmsUnavailableError:
        return KmsUnavailableError(
            f"{self._kms._name} {what} (key '{key_id}'): it was damaged in transit",
            "if it happens again, look for a proxy between here and Cloud KMS that changes requests",
        )


def _field(name: str, value: bytes) -> dict[str, Any]:
    return {name: value, f"{name}_crc32c": crc32c(value)}


def crc32c(data: bytes) -> int:
    """Return a checksum (RFC 3720, appendix B.4); bit by bit, as what is sent here is short."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _require_private(path: Path) -> None:
    """Refuse a file with a secret in it that others may read, as Java's client does."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # Google's library says what is wrong with it
    if isinstance(held, dict) and any(name in held for name in _SECRETS):
        require_private(path, "credentials file")
