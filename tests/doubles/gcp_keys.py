"""The keys of the Google Cloud KMS double: rings, keys, versions and their states, and AES-GCM.

Refusals have the words and details that gcloud and Google's client libraries are on record with: a version that is
not enabled (KEY_DISABLED), a key of another purpose (CRYPTO_SCHEME_MISMATCH), a ciphertext that is invalid or another
key's, and the checksums of Google's "Data integrity guidelines". CRYPTO_SCHEME_MISMATCH is on record for
`asymmetricSign` with a key for encryption; the other way round it is assumed.
"""

import os
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Json = dict[str, Any]

ENCRYPT_DECRYPT = "ENCRYPT_DECRYPT"
# In the order of Google's enums, for clients that send numbers.
PURPOSES = ("CRYPTO_KEY_PURPOSE_UNSPECIFIED", ENCRYPT_DECRYPT, "", "", "", "ASYMMETRIC_SIGN")
PURPOSES += ("ASYMMETRIC_DECRYPT", "RAW_ENCRYPT_DECRYPT", "", "MAC")
LEVELS = ("PROTECTION_LEVEL_UNSPECIFIED", "SOFTWARE", "HSM", "EXTERNAL", "EXTERNAL_VPC")


def enum(names: tuple[str, ...], value: Any, default: str) -> str:
    """A value of an enum, by its name or its number."""
    if value is None:
        return default
    return names[value] if isinstance(value, int) else str(value)


class RefusedError(Exception):
    """An answer that is not 200, as google.rpc.Status."""

    def __init__(self, code: int, status: str, message: str, *details: Json) -> None:
        super().__init__(message)
        self.code = code
        error: Json = {"code": code, "message": message, "status": status}
        if details:
            error["details"] = list(details)
        self.body = {"error": error}


def not_found(name: str) -> RefusedError:
    kind = "CryptoKeyVersion" if "/cryptoKeyVersions/" in name else "CryptoKey"
    kind = kind if "/cryptoKeys/" in name else "KeyRing"
    return RefusedError(404, "NOT_FOUND", f"{kind} {name} not found.")


def invalid(message: str) -> RefusedError:
    return RefusedError(400, "INVALID_ARGUMENT", message)


def _violation(kind: str, subject: str) -> Json:
    return {
        "@type": "type.googleapis.com/google.rpc.PreconditionFailure",
        "violations": [{"type": kind, "subject": subject}],
    }


def now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def crc32c(data: bytes) -> int:
    """CRC-32C (RFC 3720, appendix B.4), bit by bit: an oracle beside Java's."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@dataclass
class Version:
    name: str
    level: str
    state: str = "ENABLED"
    created: str = field(default_factory=now)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _aes: AESGCM = field(default_factory=lambda: AESGCM(AESGCM.generate_key(256)))

    def json(self) -> Json:
        return {
            "name": self.name,
            "state": self.state,
            "createTime": self.created,
            "generateTime": self.created,
            "protectionLevel": self.level,
            "algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION",
        }

    def require_enabled(self) -> None:
        if self.state != "ENABLED":
            raise RefusedError(
                400,
                "FAILED_PRECONDITION",
                f"{self.name} is not enabled, current state is: {self.state}.",
                _violation(f"KEY_{self.state}", self.name),
            )

    def encrypt(self, plaintext: bytes, aad: bytes) -> bytes:
        """A ciphertext that names its version first, as Google's do."""
        nonce = os.urandom(12)
        body = nonce + self._aes.encrypt(nonce, plaintext, aad)
        return b"\x0a\x24" + self.id.encode() + b"\x12" + len(body).to_bytes(2, "big") + body

    def decrypt(self, ciphertext: bytes, aad: bytes) -> bytes:
        head, body = ciphertext[38:41], ciphertext[41:]
        try:
            if head != b"\x12" + len(body).to_bytes(2, "big"):
                raise InvalidTag
            return self._aes.decrypt(body[:12], body[12:], aad)
        except (InvalidTag, ValueError):
            raise invalid("Decryption failed: the ciphertext is invalid.") from None


@dataclass
class Key:
    name: str
    purpose: str = ENCRYPT_DECRYPT
    level: str = "SOFTWARE"
    labels: dict[str, str] = field(default_factory=dict)
    primary: int = 0
    versions: dict[int, Version] = field(default_factory=dict)
    created: str = field(default_factory=now)

    def add_version(self) -> Version:
        number = len(self.versions) + 1
        self.versions[number] = Version(f"{self.name}/cryptoKeyVersions/{number}", self.level)
        return self.versions[number]

    def version(self, number: str) -> Version:
        found = self.versions.get(int(number)) if number.isdigit() else None
        if found is None:
            raise not_found(f"{self.name}/cryptoKeyVersions/{number}")
        return found

    def json(self) -> Json:
        answer: Json = {"name": self.name, "purpose": self.purpose, "createTime": self.created}
        answer["versionTemplate"] = {
            "protectionLevel": self.level,
            "algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION",
        }
        if self.labels:
            answer["labels"] = self.labels
        if self.primary:
            answer["primary"] = self.versions[self.primary].json()
        return answer

    def require_purpose(self) -> None:
        if self.purpose != ENCRYPT_DECRYPT:
            raise RefusedError(
                400,
                "FAILED_PRECONDITION",
                f"Operation requested for Key {self.name} has incorrect key purpose: {self.purpose}",
                _violation("CRYPTO_SCHEME_MISMATCH", self.name),
            )

    def encrypting(self, number: str | None) -> Version:
        self.require_purpose()
        if number is None and not self.primary:
            raise RefusedError(
                400, "FAILED_PRECONDITION", f"CryptoKey {self.name} has no primary version."
            )
        version = self.version(number) if number else self.versions[self.primary]
        version.require_enabled()
        return version

    def decrypting(self, ciphertext: bytes) -> Version:
        self.require_purpose()
        if not ciphertext.startswith(b"\x0a\x24") or len(ciphertext) < 41:
            raise invalid("Decryption failed: the ciphertext is invalid.")
        for version in self.versions.values():
            if version.id.encode() == ciphertext[2:38]:
                version.require_enabled()
                return version
        raise invalid("Decryption failed: verify that 'name' refers to the correct CryptoKey.")
