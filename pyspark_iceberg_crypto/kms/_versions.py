"""How a master key has versions where the store itself knows only names: keystores and PKCS#11 tokens.

Version 1 of key ``k`` is the entry ``k``, version 2 is ``k.v2``, and so on: what ``KeyVersions`` is in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark_iceberg_crypto.errors import ConfigurationError

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
        ConfigurationError: it is no text, has blanks around it, or is how a version of a key is called.
    """
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise ConfigurationError(
            f"{name!r} cannot be a key's name", "a name is text without blanks around it"
        )
    if not name.isprintable():
        raise ConfigurationError(
            f"{name!r} cannot be a key's name", "a name has no control characters"
        )
    later = _LATER.fullmatch(name)
    if later is not None:
        raise ConfigurationError(
            f"{name!r} cannot be a key's name: version {later['version']} of key {later['key']!r} is called so",
            "choose a name that does not end like .v2; rotate_key makes versions",
        )
    return name


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
