"""Keys wrapped and unwrapped by Hadoop KMS; in Java these are ``HadoopKeys``, ``EncryptedKey`` and ``HadoopErrors``."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    KeyNotFoundError,
    KmsUnavailableError,
)
from pyspark_iceberg_crypto.kms import _blob
from pyspark_iceberg_crypto.kms._client import IF_IN_USE, MasterKeys, is_bare_name
from pyspark_iceberg_crypto.kms._errors import Rule
from pyspark_iceberg_crypto.kms.hadoop._errors import ERRORS, Refused

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms.hadoop._hadoop import HadoopKms

LONGEST_NAME = 200
_KMS = "hadoop"
_IV_BYTES = 16
_KEY_BYTES = (16, 24, 32)
_NUMBERED = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)  # how Hadoop's own stores name versions
_VERSION = re.compile(r"[\w.=-]{1,200}", re.ASCII)


def _read(key_id: str, error: Exception) -> tuple[Sequence[str], str]:
    """Hadoop KMS answers 500 to a missing key as well as to what fails in it, so its messages decide."""
    codes, said = ERRORS.read(error)
    if isinstance(error, Refused) and error.status in (400, 404, 500):
        version = rf"'{re.escape(key_id)}@\S+' (not found|does not exist)"
        missing = re.search(f"No KeyVersion exists for key|{version}", f"{error.name} {said}")
        codes = [*(["missing"] if missing else []), *codes]
    return codes, said


WRAPPING = ERRORS.overruled(
    [
        Rule(
            "missing",
            KeyNotFoundError,
            "check encryption.key-id; for a new table, create the key: create_key(...)"
            + IF_IN_USE
            + ". Tables need every version that wrapped their keys",
            "{kms} has no key '{key}', or no longer the version of it that is needed ({said})",
        ),
        Rule(
            "AuthorizationException",
            AccessDeniedError,
            "allow it in kms-acls.xml: key.acl.{key}.{operation} and hadoop.kms.acl.{operation}; with Ranger KMS, by a "
            "policy for the key",
            "{kms}: user '{user}' may not {operation} with key '{key}' ({said})",
        ),
    ]
)


@dataclass(frozen=True)
class EncryptedKey:
    """A data key as Hadoop KMS encrypts it: with AES/CTR, without authentication, under one version of a key.

    Layout: length of the version (1 byte) | version (ASCII) | IV (16) | length of the encrypted data key (1) |
    encrypted data key (16, 24 or 32).

    Attributes:
        version: of the key: what is behind ``@`` in its name, such as "0".
        iv: as the KMS returns it.
        material: the data key, encrypted.
    """

    version: str
    iv: bytes = field(repr=False)
    material: bytes = field(repr=False)

    @property
    def is_possible(self) -> bool:
        """Whether a key could have it; to other lengths the KMS would answer as if it had failed."""
        return (
            _VERSION.fullmatch(self.version) is not None
            and len(self.iv) == _IV_BYTES
            and len(self.material) in _KEY_BYTES
        )

    @property
    def number(self) -> int:
        """The number of the version, from 1; 0 when it is not a number."""
        return int(self.version) + 1 if _NUMBERED.fullmatch(self.version) else 0

    def encode(self) -> bytes:
        """Return what `read` reads."""
        name = self.version.encode("ascii")
        return bytes([len(name)]) + name + self.iv + bytes([len(self.material)]) + self.material

    @classmethod
    def read(cls, body: bytes) -> tuple[EncryptedKey, bytes] | None:
        """Read one, and return what follows it; None when it is cut off, or cannot be one."""
        name, rest = _next(body)
        iv, rest = rest[:_IV_BYTES], rest[_IV_BYTES:]
        material, rest = _next(rest)
        found = cls(name.decode("ascii", errors="replace"), iv, material)
        return (found, rest) if found.is_possible else None


class HadoopKeys(MasterKeys):
    """The keys of a Hadoop KMS, by a user's name.

    A wrapped key is a header with the body `EncryptedKey` | nonce | ciphertext | tag: a data key that the KMS made for
    it alone, and the key under that data key. AES-GCM authenticates all before its ciphertext, and the key's id.
    """

    def __init__(self, kms: HadoopKms, call_seconds: float) -> None:
        self._kms = kms
        self._seconds = call_seconds
        self._servers = kms._servers()
        self._lock = threading.Lock()
        self._asked = 0  # which server: the next one when this one fails, for the next attempt

    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.wrap`; two requests."""
        self._check(key_id)
        path = f"key/{key_id}/_eek?eek_op=generate&num_keys=1"
        answer = self._ask("GENERATE_EEK", key_id, "GET", path)
        made = _made(answer[0] if isinstance(answer, list) and answer else answer, key_id)
        if made is None:
            raise self._no_hadoop_kms(key_id)
        start = made.encode()
        by, aad = self._data_key(made, key_id), _aad(start, made.number, key_id)
        return _blob.WrappedKey(_KMS, made.number, start + _blob.seal(key, by, aad)).encode()

    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.unwrap`; one request."""
        self._check(key_id)
        parsed = _blob.parse(wrapped, _KMS, key_id)
        read = EncryptedKey.read(parsed.body)
        if read is None or read[0].number != parsed.version or not _blob.is_long_enough(read[1]):
            raise BadWrappedKeyError(
                f"A {parsed} was not wrapped by {self._kms} under '{key_id}'",
                "another key wrapped it, or the table's metadata was changed or cut off: restore it",
            )
        eek, sealed = read
        aad = _aad(eek.encode(), parsed.version, key_id)
        key = _blob.unseal(sealed, self._data_key(eek, key_id), aad)
        if key is None:
            raise BadWrappedKeyError(
                f"A wrapped key does not unwrap with version {eek.version} of key '{key_id}' of {self._kms}",
                "the wrapped key was changed, or another key of that name wrapped it (was the key deleted and created "
                "again, or is it another KMS?): restore the table's metadata or the key",
            )
        return key

    def _data_key(self, eek: EncryptedKey, key_id: str) -> bytes:
        given = {"name": key_id, "iv": _base64(eek.iv), "material": _base64(eek.material)}
        path = f"keyversion/{key_id}@{eek.version}/_eek?eek_op=decrypt"
        answer = self._ask("DECRYPT_EEK", key_id, "POST", path, given)
        data_key = _bytes(answer, "material")
        if len(data_key) != len(eek.material):
            raise self._no_hadoop_kms(key_id)
        return data_key

    def _ask(self, operation: str, key_id: str, method: str, path: str, body: Any = None) -> Any:
        with self._lock:
            asked = self._asked
        server = self._servers[asked % len(self._servers)]
        try:
            with replace(WRAPPING, read=partial(_read, key_id)).typed(
                f"{self._kms} did not {operation} with key '{key_id}'",
                kms=str(self._kms),
                user=self._kms._user,
                uri=self._kms.uri,
                key=key_id,
                operation=operation,
            ):
                return self._kms._request(server, method, path, body, self._seconds)
        except KmsUnavailableError:
            with self._lock:
                if self._asked == asked:
                    self._asked += 1
            raise

    def _no_hadoop_kms(self, key_id: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self._kms} does not answer as a Hadoop KMS does (for key '{key_id}')",
            "check the URI: the path is /kms, and http or https what the KMS has; is a proxy in between?",
        )

    def _check(self, key_id: str) -> None:
        """Refuse a key id that is more than a name: it becomes part of a path."""
        if not is_bare_name(key_id, LONGEST_NAME):
            raise ConfigurationError(
                f"'{key_id}' cannot be the name of a key of {self._kms}",
                "use a key's bare name, without a version: letters, digits, '_', and '-' and '.' within",
            )


def _aad(start: bytes, number: int, key_id: str) -> bytes:
    # What precedes the ciphertext says its own length, so the two parts cannot be taken for others.
    return start + _blob.authenticated(_KMS, number, key_id)


def _made(answer: Any, key_id: str) -> EncryptedKey | None:
    """Read the KMS's answer to a request for a new one; None when it is not an answer of a Hadoop KMS."""
    if not isinstance(answer, dict):
        return None
    name = str(answer.get("versionName", ""))
    if not name.startswith(f"{key_id}@"):
        return None
    material = _bytes(answer.get("encryptedKeyVersion"), "material")
    found = EncryptedKey(name[len(key_id) + 1 :], _bytes(answer, "iv"), material)
    return found if found.is_possible else None


def _bytes(parent: Any, name: str) -> bytes:
    return _blob.decoded(parent.get(name) if isinstance(parent, dict) else None)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def _next(data: bytes) -> tuple[bytes, bytes]:
    """Split off a part whose length is in the byte before it."""
    length = data[0] if data else 0
    return data[1 : 1 + length], data[1 + length :]
