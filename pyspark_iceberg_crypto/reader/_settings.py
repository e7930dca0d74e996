"""What the properties of a catalog say about encrypted tables, as Spark's catalogs read them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.reader._allowed import PROPERTY as ALLOWED_KEY_IDS
from pyspark_iceberg_crypto.reader._allowed import AllowedKeyIds

METADATA_AUTHENTICATION = "encryption.metadata-authentication"
PLAINTEXT_TABLES = "encryption.plaintext-tables"
PLAINTEXT_FILES = "encryption.plaintext-files"
FILES_WITHOUT_LENGTH = "encryption.files-without-length"
KEK_MAX_AGE_DAYS = "encryption.kek.max-age-days"
MANAGER = "encryption.manager-impl"
_KNOWN = {
    *(ALLOWED_KEY_IDS, METADATA_AUTHENTICATION, PLAINTEXT_TABLES, PLAINTEXT_FILES),
    *(FILES_WITHOUT_LENGTH, KEK_MAX_AGE_DAYS, MANAGER),
    # what does not concern tables without Spark
    *("encryption.required", "encryption.statistics", "encryption.value-key-table"),
    *("encryption.catalog-type", "encryption.catalog-impl", "encryption.expose-key-metadata"),
}


@dataclass(frozen=True)
class Settings:
    """How tables of a catalog are read and written.

    Attributes:
        allowed_key_ids: which master keys tables may name.
        authenticates: whether metadata must have a MAC; None: as the kind of the catalog has it.
        plaintext_tables: whether tables without a key id are read.
        plaintext_files: whether files without a key are read in encrypted tables.
        files_without_length: whether encrypted files are read whose length nothing gives that is authenticated.
        kek_max_age_days: how old the KEK is, in days, when a commit makes another one.
        manager: a class of the JVM that encrypts files in some way of its own; None: as Iceberg does.
    """

    allowed_key_ids: AllowedKeyIds
    authenticates: bool | None
    plaintext_tables: bool
    plaintext_files: bool
    files_without_length: bool
    kek_max_age_days: int = 730
    manager: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Settings:
        """Read the properties; those that do not concern reading are ignored. Names have no case, as in Spark.

        Raises:
            ConfigurationError: one has a value that it may not have, two are one in other case, or one of encryption
                is not known.
        """
        properties = _of_encryption(properties)
        authentication = _choice(properties, METADATA_AUTHENTICATION, "", "require", "off")
        return cls(
            AllowedKeyIds(properties.get(ALLOWED_KEY_IDS)),
            None if not authentication else authentication == "require",
            _choice(properties, PLAINTEXT_TABLES, "allow", "refuse") == "allow",
            _choice(properties, PLAINTEXT_FILES, "refuse", "allow") == "allow",
            _choice(properties, FILES_WITHOUT_LENGTH, "refuse", "accept") == "accept",
            _days(properties),
            properties.get(MANAGER),
        )


def _of_encryption(properties: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for given, value in properties.items():
        name = given.lower()
        if not name.startswith("encryption.") or name.startswith("encryption.kms"):
            continue  # those of the KMS are looked at where it is made
        if found.setdefault(name, value) != value:
            raise ConfigurationError(
                f"Property {name} is there twice, in different case, with different values",
                "Leave one of them out.",
            )
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, 1)
            raise ConfigurationError(
                f"There is no property {given}",
                f"Did you mean {near[0]}?"
                if near
                else "docs/properties.md lists the properties of catalogs.",
            )
    return found


def _choice(properties: Mapping[str, str], name: str, default: str, *others: str) -> str:
    value = properties.get(name, default).strip().lower()
    if value not in (default, *others):
        first, last = (default, *others)[-2:]
        raise ConfigurationError(
            f"Property {name} is '{properties[name]}'", f"Use {first} (the default) or {last}."
        )
    return value


def _days(properties: Mapping[str, str]) -> int:
    value = properties.get(KEK_MAX_AGE_DAYS, "730").strip()
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 730):
        raise ConfigurationError(
            f"Property {KEK_MAX_AGE_DAYS} is '{properties[KEK_MAX_AGE_DAYS]}'",
            "Use a number from 1 to 730 (the default).",
        )
    return int(value)
