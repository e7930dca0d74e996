"""The master keys that tables may name: the catalog property `encryption.allowed-key-ids`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from pyspark_iceberg_crypto.errors import AccessDeniedError, ConfigurationError

PROPERTY = "encryption.allowed-key-ids"


class AllowedKeyIds:
    """Which key ids tables may have.

    The list is separated by commas; white space around an entry does not count. In an entry, ``*`` stands for any
    characters or none, ``?`` for exactly one; a backslash takes the meaning from the ``*``, ``?``, comma or backslash
    after it. Case counts.

    Raises:
        ConfigurationError: an entry is empty, or cannot be understood.
    """

    def __init__(self, listed: str | None) -> None:
        self.listed = listed
        entries = (
            []
            if listed is None
            else re.findall(r"(?:\\.|[^,\\]|\\$)+|(?<=,)(?=,|$)|^(?=,|$)", listed, re.DOTALL)
        )
        self._patterns = [_pattern(entry.strip(), listed or "") for entry in entries]

    def allows(self, key_id: str) -> bool:
        """Whether tables may have a key id."""
        return self.listed is None or any(one.fullmatch(key_id) for one in self._patterns)

    def check(self, table: str, key_ids: Iterable[str]) -> None:
        """Check the master keys of a table, its own and those of its KEKs, before the KMS is asked for one.

        Raises:
            AccessDeniedError: one is not allowed.
        """
        for key_id in key_ids:
            if not self.allows(key_id):
                raise AccessDeniedError(
                    f"Table {table}: encryption.key-id is '{key_id}', and the catalog allows only {self.listed} "
                    f"({PROPERTY})",
                    "If the table was created with this key, add it where the catalog is configured. If not, the "
                    "table's metadata was changed: find out who did it; CALL <catalog>.system.repair_table shows which "
                    "key wrapped its KEKs. Nothing was read or written.",
                )


def _pattern(entry: str, listed: str) -> re.Pattern[str]:
    def wrong(problem: str) -> ConfigurationError:
        return ConfigurationError(
            f"Property {PROPERTY} {problem}: '{listed}'",
            "Give the key ids that tables may have, with commas between them, such as sales,hr-*; or leave the "
            "property out, which allows every key.",
        )

    if not entry:
        raise wrong("has an empty entry")
    glob, characters = "", iter(entry)
    for one in characters:
        literal = one not in "*?\\"
        if one == "\\":
            one, literal = next(characters, ""), True
            if not one or one not in "*?,\\":
                raise wrong("has a backslash before something other than * ? , or \\")
        glob += f"[{one}]" if literal and one in "*?[" else one
    return re.compile(fnmatch.translate(glob))
