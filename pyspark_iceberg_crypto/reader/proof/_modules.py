"""Modules of encrypted Parquet files: length, nonce, ciphertext and tag (Parquet modular encryption, section 5.1)."""

from __future__ import annotations

from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyspark_iceberg_crypto.reader.proof._problems import tampered, unknown, wrong_tag

LENGTH, NONCE, TAG = 4, 12, 16
OVERHEAD = LENGTH + NONCE + TAG
"""The bytes of a module of no content."""
LAST_ORDINAL = 2**15 - 1
LONGEST = 2**31 - 1 - 8


class ModuleType(IntEnum):
    """What a module is, as its AAD has it (section 4.4.2)."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9


_OF_PAGES = (ModuleType.DATA_PAGE, ModuleType.DATA_PAGE_HEADER)


class Place:
    """A column in one row group; ordinals count from 0, and are part of the modules' AAD."""

    def __init__(self, name: str, row_group: int, ordinal: int) -> None:
        self.name, self.row_group, self.ordinal = name, row_group, ordinal

    def __str__(self) -> str:
        return f"column {self.name} in row group {self.row_group}"

    def aad(self, file_aad: bytes, kind: ModuleType, page: int = -1) -> bytes:
        """Return the AAD of one of its modules."""
        for what, ordinal in (("row group", self.row_group), ("column", self.ordinal)):
            if not 0 <= ordinal <= LAST_ORDINAL:
                raise unknown(f"of {self}: the {what} ordinal {ordinal} is not one of Parquet's")
        ordinals = self.row_group.to_bytes(2, "little") + self.ordinal.to_bytes(2, "little")
        last = page.to_bytes(2, "little") if kind in _OF_PAGES else b""
        return file_aad + bytes([kind]) + ordinals + last


def module_length(data: memoryview) -> int:
    """Return the length in bytes of the module that starts there, by its own account."""
    return LENGTH + int.from_bytes(data[:LENGTH], "little")


class Decryptor:
    """Checks the modules of one file."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def opened(self, name: str, module: memoryview, aad: bytes) -> bytes:
        """Return the content of a module, which has to be as long as these bytes.

        Args:
            name: what to call it in errors.
            module: its bytes.
            aad: that of its place.

        Raises:
            FoundError: it is not what was written.
        """
        if len(module) < OVERHEAD or module_length(module) != len(module):
            raise tampered(f"{name} does not have the {len(module)} bytes that it should have")
        body = module[LENGTH:]
        try:
            return self._cipher.decrypt(body[:NONCE], body[NONCE:], aad)
        except InvalidTag:
            raise wrong_tag(name) from None
