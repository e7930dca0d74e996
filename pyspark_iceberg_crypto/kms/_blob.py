"""The form of wrapped keys where this project chooses it; in Java these are ``WrappedKey`` and ``GcmBody``.

Layout: magic ``ICWK`` (4 bytes) | layout version (1 byte, 1) | length of the KMS's name (1) | the KMS's name (ASCII) |
the master key's version (4, big endian, 0 where the KMS does not say it) | body, which the KMS made.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, field
from typing import Any

from pyspark_iceberg_crypto.errors import BadWrappedKeyError, NotSupportedError
from pyspark_iceberg_crypto.kms._extras import READER, load

_MAGIC = b"ICWK"
_LAYOUT = 1
_NAME = len(_MAGIC) + 2  # where the KMS's name starts
_VERSION_BYTES = 4
_MOST_VERSIONS = 2**31

# The body where AES-GCM wraps here (keystore, PKCS#11, and the end of Hadoop KMS's): nonce | ciphertext | tag.
NONCE_BYTES = 12
TAG_BYTES = 16

RESTORE = "the table's metadata was changed or damaged: restore it"


@dataclass(frozen=True)
class WrappedKey:
    """A wrapped key that says who wrapped it, so that the wrong KMS refuses it with a clear error.

    Attributes:
        kms: the KMS's type, as in ``encryption.kms-type``.
        version: the version of the master key, from 1; 0 when the KMS does not say it.
        body: what the KMS made.
    """

    kms: str
    version: int
    body: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return the header and the body."""
        return header(self.kms, self.version) + self.body

    def __str__(self) -> str:
        return f"key wrapped by {self.kms}, version {self.version}, {len(self.body)} bytes"


def header(kms: str, version: int) -> bytes:
    """Return the header alone; who wraps with AES-GCM authenticates it."""
    name = kms.encode("ascii")
    return _MAGIC + bytes([_LAYOUT, len(name)]) + name + version.to_bytes(_VERSION_BYTES, "big")


def authenticated(kms: str, version: int, key_id: str) -> bytes:
    """Return what AES-GCM authenticates beside the key (the AAD): the header and the master key's id."""
    return header(kms, version) + key_id.encode()


def parse(blob: bytes, kms: str, key_id: str) -> WrappedKey:
    """Read a blob of a KMS with a header.

    Args:
        blob: the wrapped key.
        kms: the KMS that is asked to unwrap it.
        key_id: the master key's id, for the error.

    Raises:
        BadWrappedKeyError: another KMS wrapped it, or it is not a wrapped key.
        NotSupportedError: a later version of this project wrapped it.
    """
    wrapper = kms_of(blob, key_id)
    if wrapper is None:
        raise BadWrappedKeyError(
            f"A key wrapped under '{key_id}' was not wrapped by KMS type {kms}: it does not have its header "
            f"({len(blob)} bytes)",
            "if the table was written with another KMS (aws, gcp, azure), use that one; otherwise the table's "
            "metadata was changed or damaged",
        )
    if wrapper != kms:
        raise _other_kms(wrapper, kms, key_id)
    end = _NAME + len(wrapper) + _VERSION_BYTES
    version = int.from_bytes(blob[end - _VERSION_BYTES : end], "big")
    if version >= _MOST_VERSIONS:
        raise BadWrappedKeyError(
            f"A key wrapped by {kms} under '{key_id}' names an impossible key version: {version}",
            RESTORE,
        )
    return WrappedKey(wrapper, version, bytes(blob[end:]))


def kms_of(blob: bytes, key_id: str) -> str | None:
    """Return the KMS that a blob's header names; None when it has no whole header.

    Raises:
        NotSupportedError: the header is one of a later version of this project.
    """
    if len(blob) < _NAME or blob[: len(_MAGIC)] != _MAGIC:
        return None
    layout, length = blob[_NAME - 2], blob[_NAME - 1]
    if layout > _LAYOUT:
        raise NotSupportedError(
            f"A key wrapped under '{key_id}' has layout {layout}, and this version knows layout {_LAYOUT}",
            "a later version of iceberg-crypto wrapped it: update this one",
        )
    if layout != _LAYOUT or len(blob) < _NAME + length + _VERSION_BYTES:
        return None
    return bytes(blob[_NAME : _NAME + length]).decode("ascii", errors="replace")


def require_bare(blob: bytes, kms: str, key_id: str, where: str) -> None:
    """Refuse a blob with a header, for a KMS whose blobs have none, and an empty one.

    Raises:
        BadWrappedKeyError: the blob has a header, or is empty.
        NotSupportedError: it has one of a later version of this project.
    """
    wrapper = kms_of(blob, key_id)
    if wrapper is not None:
        raise _other_kms(wrapper, kms, key_id)
    if not blob:
        raise BadWrappedKeyError(f"A key wrapped under '{key_id}' by {where} is empty", RESTORE)


def parse_sealed(blob: bytes, kms: str, key_id: str, where: str) -> WrappedKey:
    """Read a blob whose body AES-GCM made here, and that names a version of the master key.

    Raises:
        BadWrappedKeyError: it has none, or was not wrapped by this KMS.
    """
    wrapped = parse(blob, kms, key_id)
    if wrapped.version == 0 or not is_long_enough(wrapped.body):
        raise BadWrappedKeyError(
            f"A {wrapped} was not wrapped by {where} under '{key_id}'",
            "the table's metadata was changed or cut off: restore it",
        )
    return wrapped


def is_long_enough(body: bytes) -> bool:
    """Return whether a body can hold a key."""
    return len(body) > NONCE_BYTES + TAG_BYTES


def decoded(text: object) -> bytes:
    """Decode Base64 of either alphabet, with or without padding; empty for other values, which an error would show."""
    if not isinstance(text, str):
        return b""
    text = text.replace("+", "-").replace("/", "_").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return b""


def nonce() -> bytes:
    """Return a random nonce (NIST SP 800-38D, 8.2.2)."""
    return os.urandom(NONCE_BYTES)


def seal(key: bytes, by: bytes, aad: bytes) -> bytes:
    """Encrypt a key by AES-GCM under a random nonce.

    Args:
        key: the key.
        by: the AES key that encrypts it.
        aad: what is authenticated beside it.
    """
    first = nonce()
    sealed: bytes = _aes_gcm(by).encrypt(first, key, aad)
    return first + sealed


def unseal(body: bytes, by: bytes, aad: bytes) -> bytes | None:
    """Decrypt what `seal` made; None when another key, other additional data or other bytes were encrypted."""
    invalid = load("cryptography.exceptions", READER).InvalidTag
    try:
        key: bytes = _aes_gcm(by).decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], aad)
    except invalid:
        return None
    return key


def _aes_gcm(key: bytes) -> Any:
    return load("cryptography.hazmat.primitives.ciphers.aead", READER).AESGCM(key)


def _other_kms(wrapper: str, kms: str, key_id: str) -> BadWrappedKeyError:
    shown = re.sub(r"[^\x21-\x7e]", "?", wrapper)
    return BadWrappedKeyError(
        f"A key wrapped under '{key_id}' was wrapped by KMS type '{shown}', and this catalog's KMS is {kms}",
        "use the KMS that the table was written with (encryption.kms-type)",
    )
