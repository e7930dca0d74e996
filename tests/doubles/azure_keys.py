"""Keys of the test DOUBLE of Azure Key Vault: real RSA and AES keys, with versions, states and Azure's refusals.

The refusals are those that users of the service have recorded, each with its source. Where no record was found, a
comment says so: what the client makes of such an answer is then shown for these words only.
"""

import base64
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.asymmetric import padding, rsa

Json = dict[str, Any]

RSA_PADDINGS = {
    "RSA-OAEP-256": padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None),
    "RSA-OAEP": padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None),
    "RSA1_5": padding.PKCS1v15(),
}
AES_BITS = {"A128KW": 128, "A192KW": 192, "A256KW": 256}
# "Date-time controlled operations": outside nbf and exp a key still unwraps, decrypts and verifies.
RECOVERING = {"unwrapkey", "decrypt", "verify"}
DAY = 86400
DIFFERENT = 16
_made: dict[int, deque[rsa.RSAPrivateKey]] = {}


class RefusedError(Exception):
    """An answer that is an error, as Key Vault writes it."""

    def __init__(
        self, status: int, code: str, message: str, inner: str | None = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: Json = {"error": {"code": code, "message": message}}
        if inner is not None:
            self.body["error"]["innererror"] = {"code": inner}
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Version:
    """One version of a key.

    Attributes:
        id: 32 hexadecimal digits.
        kty: RSA, RSA-HSM or oct-HSM.
        secret: an RSA private key, or the bytes of an AES key.
        ops: what it may be used for.
        enabled, nbf, exp: its attributes; times in seconds since 1970.
    """

    id: str
    kty: str
    secret: Any
    ops: list[str]
    enabled: bool = True
    nbf: int | None = None
    exp: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def size(self) -> int:
        return self.secret.key_size if self.is_rsa else len(self.secret) * 8

    @property
    def is_rsa(self) -> bool:
        return self.kty.startswith("RSA")

    def attributes(self) -> Json:
        found = {
            "enabled": self.enabled,
            "created": self.created,
            "updated": self.created,
            "recoveryLevel": "Recoverable+Purgeable",
            "recoverableDays": 90,
            "nbf": self.nbf,
            "exp": self.exp,
        }
        return {name: value for name, value in found.items() if value is not None}

    def jwk(self, kid: str) -> Json:
        """The public half."""
        found: Json = {"kid": kid, "kty": self.kty, "key_ops": self.ops}
        if self.is_rsa:
            numbers = self.secret.public_key().public_numbers()
            found |= {"n": base64url(_octets(numbers.n)), "e": base64url(_octets(numbers.e))}
        return found

    def use(self, kid: str, operation: str, algorithm: str, value: bytes) -> bytes:
        """Wraps or unwraps, or refuses to."""
        self._check(operation)
        if self.is_rsa and algorithm in RSA_PADDINGS:
            return self._rsa(operation, algorithm, value)
        if not self.is_rsa and AES_BITS.get(algorithm) == self.size:
            return self._aes(operation, value)
        if algorithm in RSA_PADDINGS or algorithm in AES_BITS:
            other = "'oct' or 'oct-HSM'" if algorithm in AES_BITS else "'RSA' or 'RSA-HSM'"
            # The words for `sign`: Azure/azure-sdk-for-java#6262. Not recorded for `wrapkey`.
            raise bad_parameter(
                f"Key and wrapping algorithm are incompatible. Key {kid} is of type '{self.kty}', and"
                f" algorithm '{algorithm}' can only be used with a key of type {other}."
            )
        raise bad_parameter(f"Property alg has invalid value {algorithm}")

    def _check(self, operation: str) -> None:
        now = time.time()
        if not self.enabled:  # Azure/azure-sdk-for-python#45342
            raise forbidden(
                f"Operation {operation} is not allowed on a disabled key.", "KeyDisabled"
            )
        # That it is refused: Microsoft's "About keys", "Date-time controlled operations". The words are not recorded.
        if self.nbf is not None and now < self.nbf and operation not in RECOVERING:
            raise forbidden(
                f"Operation {operation} is not allowed on a key that is not yet valid.",
                "KeyNotYetValid",
            )
        if self.exp is not None and now >= self.exp and operation not in RECOVERING:
            raise forbidden(
                f"Operation {operation} is not allowed on an expired key.", "KeyExpired"
            )
        # The troubleshooting guide of Azure's SDKs for Key Vault, "Operation not permitted".
        if operation not in map(str.lower, self.ops):
            raise forbidden(
                f"Operation {operation} is not permitted on this key.", "KeyOperationForbidden"
            )

    def _rsa(self, operation: str, algorithm: str, value: bytes) -> bytes:
        scheme = RSA_PADDINGS[algorithm]
        try:
            if operation == "wrapkey":
                return self.secret.public_key().encrypt(value, scheme)
            return self.secret.decrypt(value, scheme)
        except ValueError as error:
            # MicrosoftDocs/azure-docs#39976
            raise bad_parameter("Error occurred while decoding OAEP padding.") from error

    def _aes(self, operation: str, value: bytes) -> bytes:
        try:
            if operation == "wrapkey":
                return keywrap.aes_key_wrap(self.secret, value)
            return keywrap.aes_key_unwrap(self.secret, value)
        except (ValueError, keywrap.InvalidUnwrap) as error:
            # Not recorded; only Managed HSMs have such keys.
            raise bad_parameter(f"{operation} failed.") from error


@dataclass
class Key:
    """A key: its versions, the oldest first, and whether it was deleted (softly)."""

    name: str
    versions: list[Version]
    deleted: int | None = None

    @property
    def current(self) -> Version:
        return self.versions[-1]

    def version(self, wanted: str) -> Version | None:
        if not wanted:
            return self.current
        return next((version for version in self.versions if version.id == wanted), None)

    def rotate(self) -> Version:
        """Adds a version of the same kind."""
        before = self.current
        made = make_version(before.kty, before.size, list(before.ops))
        # Real ones differ in seconds; here a test may rotate twice in one.
        made.created = max(made.created, before.created + 1)
        self.versions.append(made)
        return made


def make_version(kty: str, size: int | None, ops: list[str] | None) -> Version:
    if kty in ("RSA", "RSA-HSM"):
        secret: Any = _rsa_key(size or 2048)
        default = ["encrypt", "decrypt", "sign", "verify", "wrapKey", "unwrapKey"]
    elif kty in ("oct", "oct-HSM"):
        secret = secrets.token_bytes((size or 256) // 8)
        default = ["encrypt", "decrypt", "wrapKey", "unwrapKey"]
    else:
        raise bad_parameter(f"Key type {kty} is not supported")
    return Version(secrets.token_hex(16), kty, secret, default if ops is None else ops)


def _rsa_key(size: int) -> rsa.RSAPrivateKey:
    """Another key than the last DIFFERENT - 1 times; those before come again, for a new one takes long."""
    made = _made.setdefault(size, deque())
    key = made.popleft() if len(made) == DIFFERENT else rsa.generate_private_key(65537, size)
    made.append(key)
    return key


def forbidden(message: str, inner: str) -> RefusedError:
    return RefusedError(403, "Forbidden", message, inner)


def bad_parameter(message: str) -> RefusedError:
    return RefusedError(400, "BadParameter", message)


def not_found(what: str) -> RefusedError:
    return RefusedError(
        404,
        "KeyNotFound",
        f"A key with (name/id) {what} was not found in this key vault. If you recently deleted this key"
        " you may be able to recover it using the correct recovery command. For help resolving this issue,"
        " please see https://go.microsoft.com/fwlink/?linkid=2125182",
    )


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _octets(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
