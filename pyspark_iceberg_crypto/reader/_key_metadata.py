"""Key metadata: what decrypts one file (Iceberg specification, appendix on standard key metadata)."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.reader._expected import ExpectedFile

VERSION = 1
KEY_LENGTHS = (16, 24, 32)


@dataclass(frozen=True)
class KeyMetadata:
    """The key of one file.

    Its form is a version (one byte), then Avro: the key's bytes, and unions of null with the AAD prefix's bytes and
    with the length.

    Attributes:
        key: the DEK: 16, 24 or 32 bytes.
        aad_prefix: what each block is authenticated with, beside its position; empty without a prefix.
        length: the file's length in bytes as it is stored; None if its writer did not record it.
    """

    key: bytes = field(repr=False)
    aad_prefix: bytes = field(repr=False)
    length: int | None

    @classmethod
    def decode(cls, data: bytes, file: ExpectedFile) -> KeyMetadata:
        """Read key metadata.

        Args:
            data: as a manifest list or a manifest has it, decrypted.
            file: which file it is of, for errors.

        Raises:
            NotSupportedError: a later version of Iceberg wrote it.
            IcebergCryptoError: it is not key metadata.
        """
        if data[:1] > bytes([VERSION]):
            raise file.of_later_key_metadata(data[0], VERSION)
        try:
            return cls._decode(data)
        except ValueError as error:
            raise file.unreadable_key_metadata(str(error)) from None  # of lengths, not of bytes

    @classmethod
    def _decode(cls, data: bytes) -> KeyMetadata:
        if data[:1] != bytes([VERSION]):
            raise ValueError("it has no version")
        reader = _Avro(data, 1)
        key = reader.bytes()
        if len(key) not in KEY_LENGTHS:
            raise ValueError(f"a key of {len(key)} bytes")
        aad_prefix = reader.bytes() if reader.is_there() else b""
        length = reader.number() if reader.is_there() else None
        if length is not None and length < 0:
            raise ValueError("a negative length")
        if not reader.is_at_end():
            raise ValueError("it has more bytes than it should")
        return cls(key, aad_prefix, length)

    def encode(self) -> bytes:
        """Return its form in manifests and manifest lists."""
        told = bytes([VERSION]) + _number(len(self.key)) + self.key
        told += _number(1) + _number(len(self.aad_prefix)) + self.aad_prefix
        return told + (_number(0) if self.length is None else _number(1) + _number(self.length))


class _Avro:
    """Avro's binary encoding; a length is compared with the bytes that are there before they are taken."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = io.BytesIO(data)
        self._data.seek(position)
        self._length = len(data)

    def number(self) -> int:
        return read_number(self._data)

    def bytes(self) -> bytes:
        length = self.number()
        if not 0 <= length <= self._length - self._data.tell():
            raise ValueError("a length in it points past its end")
        return self._data.read(length)

    def is_there(self) -> bool:
        branch = self.number()
        if branch not in (0, 1):
            raise ValueError("a union of two has no third branch")
        return branch == 1

    def is_at_end(self) -> bool:
        return self._data.tell() == self._length


def read_number(stream: BinaryIO) -> int:
    """Read Avro's zigzag number.

    Raises:
        ValueError: it is cut off, or too long.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = stream.read(1)
        if not byte:
            break
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number that is cut off")


def _number(value: int) -> bytes:
    """Write Avro's zigzag number."""
    value <<= 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
