"""A table's keys: its KEKs, which the KMS unwraps, and the keys of its manifest lists, which they encrypt."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyspark_iceberg_crypto.errors import BadWrappedKeyError, IcebergCryptoError, TamperedError
from pyspark_iceberg_crypto.reader._key_metadata import KEY_LENGTHS, KeyMetadata

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms import KeyManagementClient
    from pyspark_iceberg_crypto.reader._expected import ExpectedFile

TIMESTAMP = "KEY_TIMESTAMP"
"""The property of a KEK's entry that says when it was made, in milliseconds since the epoch: Iceberg's name."""
STATISTICS_PATH = "statistics-path"
"""The property of the entry of a statistics file's key: where the file is."""
CHECK_VALUE = "KEY_CHECK_VALUE"
"""The property of a KEK's entry by which its bytes are recognized."""
LIFE_MS = 730 * 24 * 3_600_000
"""How long a KEK encrypts and signs: Iceberg's 730 days (NIST SP 800-57)."""
DAY_MS = 24 * 3_600_000
_CHECK_LABEL = b"io.icebergcrypto key check value v1"
_CHECK_VERSION = "v1."
_NONCE = 12
_KEK_ID = re.compile("[A-Za-z0-9+/]{22}==")  # as Iceberg gives them; no KMS names a master key so


@dataclass(frozen=True)
class EncryptedKey:
    """An entry of `encryption-keys` in a table's metadata.

    Attributes:
        key_id: its id.
        encrypted: what it is, wrapped by the KMS or encrypted with a KEK.
        by: the id of the master key, or of the KEK.
        properties: further facts.
    """

    key_id: str
    encrypted: bytes = field(repr=False)
    by: str | None
    properties: Mapping[str, str]

    @property
    def made_at(self) -> int:
        """When a KEK was made, in milliseconds since the epoch; 0 if its entry does not say."""
        made = self.properties.get(TIMESTAMP, "")
        return int(made) if re.fullmatch("[0-9]{1,19}", made) else 0

    def lives(self, at_ms: int) -> bool:
        """Whether a KEK may encrypt and sign at a time, in milliseconds since the epoch."""
        return self.made_at > at_ms - LIFE_MS

    def json(self) -> dict[str, Any]:
        """Return the entry as metadata has it."""
        told = {
            "key-id": self.key_id,
            "encrypted-key-metadata": base64.b64encode(self.encrypted).decode(),
            "encrypted-by-id": self.by,
        }
        return {**told, "properties": dict(self.properties)} if self.properties else told


class TableKeys:
    """The keys of a table as its metadata has them."""

    def __init__(
        self,
        table: str,
        metadata: Mapping[str, Any],
        kms: KeyManagementClient,
        in_force: Collection[str] | None = None,
    ) -> None:
        """Read the entries; the KMS is not asked yet.

        Args:
            table: the table's full name.
            metadata: the document of its metadata.
            kms: what unwraps its KEKs, bound to the table where it can be; it keeps what it unwrapped, if anyone does.
            in_force: the ids of those entries that the metadata in force has; None: of all.

        Raises:
            TamperedError: `encryption-keys` is not a list of keys.
        """
        self.table = table
        self._kms, self._in_force = kms, in_force
        try:
            entries = entries_of(metadata)
        except (KeyError, TypeError, AttributeError, binascii.Error, ValueError) as error:
            raise TamperedError(
                f"Table {table}: its metadata is refused: encryption-keys is not a list of keys",
                "Restore the metadata file from a backup or an object version.",
            ) from error
        # it is replaced, never changed: other threads go through it
        self.entries = {one.key_id: one for one in entries}
        self._orphans = _orphans(self.entries, metadata)
        self._lock = threading.Lock()

    @property
    def master_key_ids(self) -> set[str]:
        """The ids of the master keys that the KMS may be asked for.

        They are those of all KEKs, and of all keys that encrypt another: an entry with the id of a master key hides
        none.
        """
        encrypting = {one.by for one in self.entries.values()}
        return {
            one.by
            for one in self.entries.values()
            if one.by is not None and (self._is_kek(one) or one.key_id in encrypting)
        }

    @property
    def keks(self) -> list[EncryptedKey]:
        """The KEKs: the keys that no other key of the table encrypts, or did before it was removed."""
        return [one for one in self.entries.values() if self._is_kek(one)]

    def _is_kek(self, entry: EncryptedKey) -> bool:
        return entry.by not in self.entries and entry.key_id not in self._orphans

    def kek(self, entry: EncryptedKey) -> bytes:
        """Unwrap a KEK, and check what the KMS returns; `CachedKms` keeps it.

        Raises:
            BadWrappedKeyError: the KMS returns another key.
            IcebergCryptoError: the KMS's own error.
        """
        master_key = entry.by or ""
        try:
            first = bytes(self._kms.unwrap_key(entry.encrypted, master_key))
            fits = self._fits(entry, first)
            if fits:
                return first
            if forget := getattr(self._kms, "forget", None):
                forget(entry.encrypted, master_key)
            second = bytes(self._kms.unwrap_key(entry.encrypted, master_key))
        except IcebergCryptoError as error:
            raise in_table(error, self.table) from error.__cause__
        same = hmac.compare_digest(first, second)
        if (not same and self._fits(entry, second)) or (same and fits is None):
            return second  # if nothing tells, who decrypts with it finds out what was changed
        problem = f"{_problem(entry, second)}, twice" if same else "two different keys"
        raise BadWrappedKeyError(
            f"Table {self.table}: KEK {entry.key_id}, which master key '{master_key}' wrapped, cannot be used: "
            f"{self._kms} returned {problem}",
            "Nothing was read or written with it. Check that the catalog's KMS is the one that wrapped it, and the KMS "
            "itself: once that gives the right key, the table is readable. If the KMS is right, encryption-keys was "
            "edited: restore that metadata file from a backup or an object version.",
        )

    def of_manifest_list(self, key_id: str, file: ExpectedFile) -> KeyMetadata:
        """Decrypt the key metadata of a manifest list.

        Args:
            key_id: what its snapshot has as `key-id`.
            file: the manifest list, for errors.

        Raises:
            TamperedError: the table has no such key, or it was changed.
            IcebergCryptoError: the KMS's own error; or the key metadata cannot be read.
        """
        entry = self.entries.get(key_id)
        kek = None if entry is None else self.entries.get(entry.by or "")
        if entry is None or kek is None:
            missing = key_id if entry is None else entry.by
            raise TamperedError(
                f"Table {self.table}: {file.location} cannot be read: the metadata has no key {missing}, which its "
                "snapshot names",
                "encryption-keys was edited, or an older writer dropped it: restore the metadata file from a backup or "
                "an object version. Another snapshot may be readable.",
            )
        try:
            data = _opened(self.kek(kek), kek, entry)
        except InvalidTag:
            raise file.changed(
                f"key {key_id} in encryption-keys does not decrypt with KEK {kek.key_id}: the metadata was changed"
            ) from None
        return KeyMetadata.decode(data, file)

    def proves_writer(self, key_id: str | None) -> bool:
        """Whether only users of a master key can have made what is encrypted with a manifest list's key.

        Anyone may have wrapped a KEK of older metadata, or one that the KMS does not authenticate, as with RSA.
        """
        entry = self.entries.get(key_id or "")
        kek = entry and self.entries.get(entry.by or "")
        proves = getattr(self._kms, "authenticates_wrapping", None)
        if kek is None or kek.by is None or proves is None:
            return False
        return (self._in_force is None or kek.key_id in self._in_force) and bool(proves(kek.by))

    def for_writing(self, master_key: str, length: int, max_age_days: int = 730) -> EncryptedKey:
        """Return the KEK that encrypts and signs: the newest; or another one, if that is too old.

        Args:
            master_key: the table's.
            length: of another KEK, in bytes.
            max_age_days: from which age on another one is made.

        Raises:
            BadWrappedKeyError: the KMS does not return what it wrapped.
            IcebergCryptoError: the KMS's own error.
        """
        with self._lock:
            now = int(time.time() * 1000)
            newest = max(
                (one for one in self.entries.values() if one.by == master_key),
                key=lambda one: one.made_at,
                default=None,
            )
            if newest and newest.lives(now) and newest.made_at >= now - max_age_days * DAY_MS:
                return newest
            # a client whose clock was fast may have made the newest one
            made = self._made(master_key, length, max(now, newest.made_at + 1 if newest else 0))
            self.entries = {**self.entries, made.key_id: made}
            return made

    def sealed(self, kek: EncryptedKey, key_metadata: KeyMetadata) -> str:
        """Encrypt the key metadata of a new manifest list, and keep it for its commit.

        Returns:
            The id of its key.
        """
        key_id = _random_id()
        sealed = seal(self.kek(kek), kek, key_metadata)
        with self._lock:
            made = EncryptedKey(key_id, sealed, kek.key_id, {})
            self.entries = {**self.entries, key_id: made}
        return key_id

    def _made(self, master_key: str, length: int, made_at: int) -> EncryptedKey:
        """Make a KEK; what was encrypted with one that the KMS does not return would be lost."""
        key = os.urandom(length)
        try:
            wrapped = bytes(self._kms.wrap_key(key, master_key))
            if forget := getattr(self._kms, "forget", None):
                forget(wrapped, master_key)
            returned = bytes(self._kms.unwrap_key(wrapped, master_key))
        except IcebergCryptoError as error:
            raise in_table(error, self.table) from error.__cause__
        if not hmac.compare_digest(key, returned):
            raise BadWrappedKeyError(
                f"Table {self.table}: {self._kms} wrapped a new key with master key '{master_key}', and returned "
                "another one when it was asked to unwrap it",
                "Nothing was encrypted with it. Check the KMS: it must return what it was given.",
            )
        told = {TIMESTAMP: str(made_at), CHECK_VALUE: check_value(key)}
        return EncryptedKey(_random_id(), wrapped, master_key, told)

    def _fits(self, entry: EncryptedKey, key: bytes) -> bool | None:
        """Whether bytes are those of a KEK; None if nothing tells."""
        if _problem(entry, key):
            return False
        if entry.properties.get(CHECK_VALUE, "").startswith(_CHECK_VERSION):
            return True
        for other in self.entries.values():
            if other.by == entry.key_id:
                try:
                    _opened(key, entry, other)
                except InvalidTag:
                    return None
                return True
        return None


def derived(kek: bytes, label: bytes, context: str, bits: int) -> bytes:
    """Derive bytes from a KEK for another purpose than encryption (NIST SP 800-108r1, section 4.1).

    Args:
        kek: its bytes.
        label: the purpose.
        context: what they are for, or empty.
        bits: how many: 256 at the most.
    """
    block = b"\0\0\0\1" + label + b"\0" + context.encode() + bits.to_bytes(4, "big")
    return hmac.digest(kek, block, hashlib.sha256)[: bits // 8]


def check_value(kek: bytes) -> str:
    """Return the property by which a KEK's bytes are recognized; it tells nothing else of them."""
    return _CHECK_VERSION + derived(kek, _CHECK_LABEL, "", 64).hex()


def seal(kek: bytes, entry: EncryptedKey, key_metadata: KeyMetadata) -> bytes:
    """Encrypt the key metadata of a manifest list with a KEK."""
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(kek).encrypt(nonce, key_metadata.encode(), _aad(entry))


def _opened(kek: bytes, entry: EncryptedKey, sealed: EncryptedKey) -> bytes:
    try:
        return AESGCM(kek).decrypt(
            sealed.encrypted[:_NONCE], sealed.encrypted[_NONCE:], _aad(entry)
        )
    except ValueError:  # it is too short
        raise InvalidTag from None


def _orphans(entries: Mapping[str, EncryptedKey], metadata: Mapping[str, Any]) -> set[str]:
    """Return the keys of manifest lists that are gone, if their KEKs were removed before them.

    They look like KEKs, which no other key encrypts either. But they encrypt nothing, and what they name is a KEK, not
    a master key. Java's `Keks` has the same rule.
    """
    properties, snapshots = metadata.get("properties"), metadata.get("snapshots")
    own = properties.get("encryption.key-id") if isinstance(properties, dict) else None
    listed = snapshots if isinstance(snapshots, list) else []
    named = [one.get("key-id") for one in listed if isinstance(one, dict)]
    encrypting = {one.by for one in entries.values()}
    return {
        one.key_id
        for one in entries.values()
        if one.by is not None
        and one.by not in entries
        and set(one.properties or {}) <= {STATISTICS_PATH}
        and one.key_id not in encrypting
        and one.by != own
        and _KEK_ID.fullmatch(one.by)
        and one.key_id not in named
    }


def _random_id() -> str:
    return base64.b64encode(os.urandom(16)).decode()


def _aad(kek: EncryptedKey) -> bytes:
    return kek.properties.get(TIMESTAMP, "").encode()


def _problem(entry: EncryptedKey, key: bytes) -> str | None:
    if len(key) not in KEY_LENGTHS:
        return f"{len(key)} bytes, which is not an AES key"
    told = entry.properties.get(CHECK_VALUE, "")
    if told.startswith(_CHECK_VERSION) and told != check_value(key):
        return "a key that does not fit the KEK's check value"
    return None


def entries_of(metadata: Mapping[str, Any]) -> list[EncryptedKey]:
    """Return `encryption-keys` of a document of metadata.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: it is not a list of keys.
    """
    return [_entry(one) for one in metadata.get("encryption-keys") or []]


def _entry(json: Mapping[str, Any]) -> EncryptedKey:
    by, properties = json.get("encrypted-by-id"), json.get("properties") or {}
    key_id = json["key-id"]
    if not (
        isinstance(key_id, str) and isinstance(by, str | None) and isinstance(properties, dict)
    ):
        raise TypeError("it is not a key")
    return EncryptedKey(
        key_id,
        base64.b64decode(json["encrypted-key-metadata"], validate=True),
        by,
        {str(name): str(value) for name, value in properties.items()} if properties else {},
    )


def in_table(error: IcebergCryptoError, table: str) -> IcebergCryptoError:
    """Return an error that names the table, if it does not already."""
    if error.message.startswith("Table "):
        return error
    return type(error)(f"Table {table}: {error.message}", error.hint)
