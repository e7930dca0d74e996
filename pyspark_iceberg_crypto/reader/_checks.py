"""What is checked of a table's metadata before anything is read by it.

First the master keys that it names, before the KMS is asked for one; then that it is genuine, as far as the kind of
its catalog lets anyone tell.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    PlaintextFoundError,
    TamperedError,
)
from pyspark_iceberg_crypto.reader import _document, _mac, _settings
from pyspark_iceberg_crypto.reader._keys import EncryptedKey, TableKeys
from pyspark_iceberg_crypto.reader._settings import Settings

KEY_ID = "encryption.key-id"
_HASH = "metadata_hash"  # Iceberg's name in the Hive metastore


class Trust(Enum):
    """What vouches for the metadata of a catalog's tables."""

    POINTER = "no more than a pointer to metadata.json is kept: its MAC"
    HIVE = "the Hive metastore: the hash that it has of the metadata"
    SERVER = "the REST server, which writes the metadata"
    NOTHING = "nothing is known of this kind of catalog"


@dataclass(frozen=True)
class Loaded:
    """A table's metadata as it was loaded.

    Attributes:
        table: the table's full name.
        location: where its metadata file is, by the catalog's word.
        document: what it says.
        stored: the bytes of the file; None if a server's answer is what counts.
        parameters: what a Hive metastore keeps of the table.
    """

    table: str
    location: str
    document: Mapping[str, Any]
    stored: bytes | None = field(default=None, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.document.get("properties") or {}

    @property
    def key_id(self) -> str | None:
        """The id of the table's master key; None: it is not encrypted."""
        return self.properties.get(KEY_ID)

    @property
    def current_key_id(self) -> str | None:
        """What the snapshot in force has as `key-id`."""
        current = self.document.get("current-snapshot-id")
        snapshots = self.document.get("snapshots") or []
        return next((one.get("key-id") for one in snapshots if one["snapshot-id"] == current), None)

    @property
    def was_encrypted(self) -> bool:
        """Whether the table is encrypted, or was until its key id was removed."""
        return bool(
            self.key_id is not None or self.document.get("encryption-keys") or self.current_key_id
        )

    @property
    def hive_hash(self) -> str | None:
        """The hash that the Hive metastore has of the metadata of an encrypted table; None: it has none."""
        return (self.parameters.get(_HASH) or None) if KEY_ID in self.parameters else None

    @property
    def text(self) -> bytes:
        """What the metadata file holds, decompressed."""
        return _document.text(self.location, self.stored or b"")


def check(loaded: Loaded, keys: TableKeys, kms: object, trust: Trust, settings: Settings) -> None:
    """Check metadata before it is used.

    Raises:
        AccessDeniedError: it names a master key that is not allowed.
        TamperedError: it is not what was committed.
        PlaintextFoundError: the table is not encrypted, and the catalog refuses such tables.
        ConfigurationError: its master key cannot vouch for it.
    """
    if loaded.key_id is not None:
        settings.allowed_key_ids.check(loaded.table, {loaded.key_id, *keys.master_key_ids})
    if trust is Trust.HIVE:
        _check_hash(loaded)
    if authenticates(trust, settings):
        _check_mac(loaded, keys, kms)
    elif loaded.key_id is None and loaded.was_encrypted:
        raise _refused(loaded, f"{KEY_ID} is gone (it was '{_lost(keys)}')")
    if loaded.key_id is None and not settings.plaintext_tables:
        raise PlaintextFoundError(
            f"Table {loaded.table}: it has no {KEY_ID}, and the catalog has {_settings.PLAINTEXT_TABLES}=refuse",
            "If it was encrypted, its metadata was replaced: find out who did it, and restore it. If it never was, use "
            "it in a catalog without that property.",
        )


def authenticates(trust: Trust, settings: Settings) -> bool:
    """Whether metadata has a MAC.

    Raises:
        ConfigurationError: the catalog requires one, and its tables cannot have it.
    """
    by_default = trust is Trust.POINTER
    wanted = by_default if settings.authenticates is None else settings.authenticates
    if wanted and not by_default:
        raise ConfigurationError(
            f"The catalog has {_settings.METADATA_AUTHENTICATION}=require, and its tables have no MAC",
            "Leave the property out: it is for JDBC, Hadoop, Glue and Nessie catalogs. A Hive metastore keeps a hash "
            "of the metadata, and a REST server writes the metadata itself.",
        )
    return wanted


def _check_hash(loaded: Loaded) -> None:
    """Compare the file with the hash that Iceberg's Java keeps in the Hive metastore for encrypted tables."""
    if KEY_ID not in loaded.parameters:
        return
    for name in (KEY_ID, "encryption.data-key-length"):
        told, has = loaded.parameters.get(name), loaded.properties.get(name)
        if told != has:
            raise _refused(
                loaded,
                f"it has {name}={has or 'nothing'}, and the Hive metastore has {told or 'nothing'}",
            )
    kept = loaded.hive_hash
    if kept is None:
        return  # as Iceberg does; who verifies the table is told
    digest = hashlib.sha256(loaded.text).digest()  # Iceberg writes what it makes the hash of
    if kept != base64.b64encode(digest).decode():
        raise _refused(
            loaded,
            "its hash differs from the one that the Hive metastore has",
            "Nothing was read. Either a client of Iceberg before 1.11 committed, which leaves the hash of the former "
            "file; or someone who can write to the storage changed this file, or put another in its place. Compare it "
            "with the file that the metastore's previous_metadata_location names. If they differ by a commit that you "
            "know, keep it, and remove the table's parameter metadata_hash in the metastore: the next commit writes it "
            "again. Otherwise restore the file from a backup or an object version.",
        )


def _check_mac(loaded: Loaded, keys: TableKeys, kms: object) -> None:
    owner = _mac.table_of_folder(loaded.location)
    claims = loaded.was_encrypted or _mac.PROPERTY in loaded.properties or owner is not None
    if claims and (problem := _problem(loaded, keys, kms, owner)):
        raise _refused(loaded, problem)


def _problem(loaded: Loaded, keys: TableKeys, kms: object, owner: str | None) -> str | None:
    """What is wrong with the metadata, or None."""
    uuid = str(loaded.document.get("table-uuid"))
    if owner is not None and owner != uuid:
        return f"it is of another table (UUID {uuid}) than the file's folder says ({owner})"
    if loaded.key_id is None:
        lost = _lost(keys)
        return (
            f"{KEY_ID} is gone{f' (it was {lost!r})' if lost else ''}: a client without encryption, or someone with "
            "access to the storage, removed it"
        )
    require_authenticated_wrapping(loaded.table, loaded.key_id, kms)
    value = loaded.properties.get(_mac.PROPERTY)
    mac = _mac.Mac.parse(value)
    if mac is None:
        if value:
            return f"{_mac.PROPERTY} is not a MAC"
        return f"it has no {_mac.PROPERTY}: a client that does not authenticate wrote the table, or the MAC was removed"
    kek = keys.entries.get(mac.kek_id)
    if kek is None or kek.by != loaded.key_id:
        return f"its MAC was made with KEK {mac.kek_id}, which is not among the keys of '{loaded.key_id}'"
    key = _mac.key(keys.kek(kek), uuid)
    place = _mac.Place.of(loaded.location)
    if mac.matches(loaded.text, place, key):
        return _retired(loaded, keys, kek)
    return _mismatch(loaded, mac, place, key)


def _mismatch(loaded: Loaded, mac: _mac.Mac, place: _mac.Place, key: bytes) -> str:
    """Why a MAC does not match: it tells old metadata and another table's from edited one."""
    location = str(loaded.document.get("location"))
    folder = loaded.properties.get("write.metadata.path", f"{location}/metadata")
    own = _mac.Place(_mac.Place.of(f"{folder}/").folder, mac.version)
    if mac.matches(loaded.text, own, key):
        if own.folder == place.folder:
            return f"version {own.version} of it was put in place of version {place.version}"
        return (
            f"it is genuine, but of the table at {location} and not of this one, or the registration of this "
            "one is not finished"
        )
    if mac.version < place.version:
        return (
            f"version {place.version} was committed by a client that does not authenticate (the last one that did "
            f"wrote version {mac.version}), or was made to look so"
        )
    return "it was changed after it was committed: its MAC does not match"


def _retired(loaded: Loaded, keys: TableKeys, kek: EncryptedKey) -> str | None:
    """Why a KEK may not have signed the metadata, or None."""
    newest = max(
        (one for one in keys.entries.values() if one.by == kek.by), key=lambda k: k.made_at
    )
    if kek.made_at < newest.made_at:
        return f"its MAC was made with KEK {kek.key_id}, which {newest.key_id} has replaced"
    if not kek.lives(int(loaded.document.get("last-updated-ms", time.time() * 1000))):
        return f"its MAC was made with KEK {kek.key_id}, after that KEK's lifetime"
    return None


def require_authenticated_wrapping(table: str, key_id: str, kms: object) -> None:
    """Require that only users of a master key can wrap with it.

    Raises:
        ConfigurationError: the KMS does not say so.
    """
    proves = getattr(kms, "authenticates_wrapping", None)
    if proves is None or not proves(key_id):
        raise ConfigurationError(
            f"Table {table}: its metadata cannot be authenticated: {kms} does not prove who wrapped a key with master "
            f"key '{key_id}' (as with RSA, whose public half wraps), so anyone could make the key of a MAC",
            "Use a symmetric master key; or set the catalog property encryption.metadata-authentication=off, and "
            "anyone who can write to the storage can change the metadata. If you have your own KMS client, and only "
            "users of the key can wrap with it: CachedKms(client, authenticated_wrapping=True).",
        )


def _lost(keys: TableKeys) -> str | None:
    return next((kek.by for kek in keys.keks if kek.by), None)


def _refused(loaded: Loaded, problem: str, hint: str | None = None) -> IcebergCryptoError:
    digest = hashlib.sha256(loaded.stored).hexdigest() if loaded.stored is not None else "unknown"
    return TamperedError(
        f"Table {loaded.table}: its metadata is refused: {problem} ({loaded.location}, SHA-256 {digest})",
        hint
        or "Find out who wrote that file; nothing was read. A catalog with encryption.metadata-authentication=off "
        "shows the table as it is. If all is right, verify the table there, then sign what the file has, in Spark: "
        "CALL <catalog>.system.authenticate_metadata. If not, restore the file from a backup or an object version; "
        "do not drop the table.",
    )
