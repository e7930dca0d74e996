"""Versions of a master key where the store itself knows only names: keystores and PKCS#11 tokens.

Version 1 of key ``k`` is the entry ``k``, version 2 is ``k.v2``, and so on; in Java that is ``KeyVersions``.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyspark_iceberg_crypto.errors import ConfigurationError, KeyNotFoundError
from pyspark_iceberg_crypto.kms._base import KeyInfo, Kms

KEY_BITS = (128, 192, 256)

_LATER = re.compile(r"(?P<key>.+)\.v(?P<version>[1-9][0-9]{0,8})", re.DOTALL)


def entry(key_id: str, version: int) -> str:
    """Name the entry that holds a version of a key."""
    return key_id if version == 1 else f"{key_id}.v{version}"


def by_key(entries: Iterable[str]) -> dict[str, list[int]]:
    """Group entries by key; the versions of each are sorted, and may have gaps."""
    found: dict[str, list[int]] = {}
    for name in entries:
        later = _LATER.fullmatch(name)
        if later is None:
            found.setdefault(name, []).append(1)
        elif int(later["version"]) > 1:
            found.setdefault(later["key"], []).append(int(later["version"]))
    return {key: sorted(versions) for key, versions in sorted(found.items())}


def check_name(name: object) -> str:
    """Check that this can be a key's id.

    Raises:
        ConfigurationError: it is not text, has leading or trailing spaces, or is the name of a key's version.
    """
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise ConfigurationError(
            f"{name!r} cannot be a key's name", "a name is text without leading or trailing spaces"
        )
    if not name.isprintable():
        raise ConfigurationError(
            f"{name!r} cannot be a key's name", "a name has no control characters"
        )
    later = _LATER.fullmatch(name)
    if later is not None:
        raise ConfigurationError(
            f"{name!r} cannot be a key's name: it is the name of version {later['version']} of key {later['key']!r}",
            "choose a name that does not end like .v2; rotate_key creates versions",
        )
    return name


def require_key_id(key_id: str, kms: str) -> None:
    """Refuse a key id that names a version: a table would stay with that version for ever.

    Raises:
        ConfigurationError: it does.
    """
    later = _LATER.fullmatch(key_id)
    if later is not None:
        raise ConfigurationError(
            f"Key id '{key_id}' is the name that {kms} gives to version {later['version']} of key '{later['key']}'",
            f"use '{later['key']}' as encryption.key-id: its newest version wraps, and older ones unwrap",
        )


def check_bits(key_bits: int) -> None:
    """Check that an AES key can have this size.

    Raises:
        ConfigurationError: it cannot.
    """
    if key_bits not in KEY_BITS:
        raise ConfigurationError(
            f"an AES key cannot have {key_bits} bits", "key_bits is 128, 192 or 256"
        )


def name_list(key_ids: Sequence[str]) -> str:
    """Join key ids for a text."""
    return ", ".join(key_ids) if key_ids else "(none named)"


class VersionedKms(Kms):
    """A KMS whose store holds entries by their names, one for each version of a key."""

    def create_key(self, name: str, *, key_bits: int = 256) -> KeyInfo:
        """Make a new random AES key. A key that exists is never overwritten.

        Args:
            name: the key's name, which is its key id.
            key_bits: the length of the key: 128, 192 or 256.
        """
        key_id = self._key_id(name)
        check_bits(key_bits)

        def new_key(keys: Mapping[str, list[int]]) -> str:
            if key_id in keys:
                raise ConfigurationError(
                    f"{self._name} already has a key {key_id!r}",
                    "choose another name; rotate_key creates a new version of a key",
                )
            return key_id

        self._add(new_key, key_bits)
        return self.describe_key(key_id)

    def list_keys(self) -> list[KeyInfo]:
        """List the AES keys, by their ids."""
        entries = self._entries()
        keys = by_key(entries).items()
        return [self._info(key_id, versions, entries) for key_id, versions in keys]

    def describe_key(self, key_id: str) -> KeyInfo:
        """Describe a key: its newest version, and how many versions it has."""
        name = self._key_id(key_id)
        keys = {info.key_id: info for info in self.list_keys()}
        if name not in keys:
            raise self._missing(name, keys)
        return keys[name]

    def rotate_key(self, key_id: str, *, key_bits: int = 256) -> KeyInfo:
        """Add a version to a key: it wraps from now on, and the older ones still unwrap.

        Args:
            key_id: the key.
            key_bits: the length of the new version: 128, 192 or 256.
        """
        name = self._key_id(key_id)
        check_bits(key_bits)

        def next_version(keys: Mapping[str, list[int]]) -> str:
            if name not in keys:
                raise self._missing(name, keys)
            return entry(name, keys[name][-1] + 1)

        self._add(next_version, key_bits)
        return self.describe_key(name)

    def _missing(self, key_id: str, keys: Iterable[str]) -> KeyNotFoundError:
        return KeyNotFoundError(
            f"{self._name} has no key {key_id!r}", f"it has: {', '.join(keys) or 'none'}"
        )

    @abstractmethod
    def _key_id(self, name: str) -> str:
        """Check a name, and return it as the store will have it."""

    @abstractmethod
    def _entries(self) -> dict[str, Any]:
        """Return all entries by their names, with what is known of each."""

    @abstractmethod
    def _info(self, key_id: str, versions: list[int], entries: dict[str, Any]) -> KeyInfo:
        """Describe a key, given its versions and all entries."""

    @abstractmethod
    def _add(self, choose: Callable[[dict[str, list[int]]], str], bits: int) -> None:
        """Add the entry that `choose` names, given the keys there are."""
