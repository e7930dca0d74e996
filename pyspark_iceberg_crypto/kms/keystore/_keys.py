"""Keys wrapped and unwrapped by a PKCS12 file; in Java these are ``KeystoreKeys`` and ``KeystoreFile``."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms import _blob, _versions
from pyspark_iceberg_crypto.kms._client import IF_IN_USE, MasterKeys
from pyspark_iceberg_crypto.kms._secrets import require_private
from pyspark_iceberg_crypto.kms._settings import AnyPath
from pyspark_iceberg_crypto.kms.keystore import _keytool, _pkcs12

_KMS = "keystore"
Stamp = tuple[int, int, int, int]


class KeystoreKeys(MasterKeys):
    """The master keys of a file. Wrapped keys have the body nonce | ciphertext | tag.

    The newest version wraps: each wrap checks whether the file has changed. The version that the header names unwraps;
    a file that has changed is read again when that version is missing or does not fit.
    """

    def __init__(self, path: Path, password_env: str | None, password_file: AnyPath | None) -> None:
        self._path = path
        self._password = password_env, password_file
        self._lock = threading.Lock()
        self._known: _File | None = None

    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.wrap`."""
        file = self._current(key_id)
        version = file.newest(key_id)
        if version == 0:
            raise self._no_such_key(key_id, file)
        body = _blob.seal(
            key, file.key(key_id, version), _blob.authenticated(_KMS, version, key_id)
        )
        return _blob.WrappedKey(_KMS, version, body).encode()

    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.unwrap`."""
        parsed = _blob.parse_sealed(wrapped, _KMS, key_id, f"keystore {self._path}")
        version = parsed.version
        aad = _blob.authenticated(_KMS, version, key_id)
        file = self._holding(key_id, version)
        key = _blob.unseal(parsed.body, file.key(key_id, version), aad)
        if key is None and self._current(key_id) is not file:  # it was put right since
            by = self._holding(key_id, version).key(key_id, version)
            key = _blob.unseal(parsed.body, by, aad)
        if key is None:
            raise BadWrappedKeyError(
                f"A wrapped key does not unwrap with version {version} of key '{key_id}' of keystore {self._path}",
                "this keystore's key of that name is not the one that wrapped it, or the wrapped key was changed: use "
                "the keystore that the table was written with",
            )
        return key

    def _current(self, key_id: str) -> _File:
        """Return the file as it is now, so that the newest version wraps."""
        _versions.require_key_id(key_id, f"keystore {self._path}")
        with self._lock:
            if self._known is None or self._known.stamp != _stamp(self._path):
                self._known = _read(self._path, *self._password)
            return self._known

    def _holding(self, key_id: str, version: int) -> _File:
        """Return a file with a version of a key: as it was read before or, if need be, as it is now."""
        with self._lock:
            known = self._known
        if known is not None and known.has(key_id, version):
            return known
        known = self._current(key_id)
        if known.has(key_id, version):
            return known
        if known.newest(key_id) == 0:
            raise self._no_such_key(key_id, known)
        raise KeyNotFoundError(
            f"Keystore {self._path} has key '{key_id}', but not its version {version} "
            f"(entry '{_versions.entry(key_id, version)}')",
            "use the keystore that the table was written with, or restore the version from a backup of the file",
        )

    def _no_such_key(self, key_id: str, file: _File) -> KeyNotFoundError:
        return KeyNotFoundError(
            f"Keystore {self._path} has no key '{key_id}'",
            f"it has: {', '.join(_versions.by_key(file.entries)) or 'none'}. For a new table, use one of these as "
            f"encryption.key-id, or add the key to the keystore{IF_IN_USE}",
        )


@dataclass(frozen=True)
class _File:
    """A file as it was read; `stamp` tells two states of it apart."""

    path: Path
    stamp: Stamp
    entries: dict[str, _pkcs12.Entry]
    password: str
    opened: dict[str, bytes]

    def __repr__(self) -> str:
        return f"<keystore {self.path}>"

    def newest(self, key_id: str) -> int:
        """Return the newest version of a key; 0 if it does not exist."""
        return max(_versions.by_key(self.entries).get(key_id.lower(), [0]))

    def has(self, key_id: str, version: int) -> bool:
        """Return whether a version of a key is there."""
        return _versions.entry(key_id, version).lower() in self.entries

    def key(self, key_id: str, version: int) -> bytes:
        """Return a version of a key; the first time that is slow by design."""
        name = _versions.entry(key_id, version).lower()
        if name not in self.opened:
            self.opened[name] = self._open(name)
        return self.opened[name]

    def _open(self, name: str) -> bytes:
        try:
            return self.entries[name].key(self.password)
        except _pkcs12.WrongPasswordError:
            raise AccessDeniedError(
                f"Key '{name}' of keystore {self.path} has a password of its own",
                "give the key the keystore's password, as PKCS12 keystores have it",
            ) from None
        except _pkcs12.NotAesError:
            raise ConfigurationError(
                f"Key '{name}' of keystore {self.path} is not an AES secret key",
                "make one with Keystore.create_key",
            ) from None


def _read(path: Path, password_env: str | None, password_file: AnyPath | None) -> _File:
    password, where = _keytool.password(password_env, password_file)
    stamp = _stamp(path)  # before the content: a change in between makes this copy an old one
    require_private(path, "keystore")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return _File(path, stamp, _pkcs12.read(content, password, path), password, {})
    except _pkcs12.WrongPasswordError:
        raise LoginFailedError(
            f"The password for keystore {path} is wrong, or the file was changed",
            f"check the password in {where}; if it is right, restore the file from a backup",
        ) from None
    except _pkcs12.NoKeystoreError:
        raise ConfigurationError(
            f"{path} (the keystore's path) is not a PKCS12 keystore",
            "check the path; if tables use this keystore already, restore it from a backup; otherwise make one:"
            " Keystore.create(...)",
        ) from None


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _unreadable(path: Path, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError):
        return ConfigurationError(
            f"there is no keystore {path}",
            "check the path; if tables use this keystore already, restore it from a backup: a new one cannot read them;"
            " otherwise Keystore.create(...) makes one",
        )
    if isinstance(error, PermissionError):
        return AccessDeniedError(
            f"Keystore {path} may not be read by this user",
            "make this user the file's owner (chown), with mode 600",
        )
    return KmsUnavailableError(
        f"Keystore {path} cannot be read: {error}",
        "check the file system that it is on, and that the path is a file",
    )
