"""Avro files that nobody authenticated: PyIceberg reads them with a decoder that stays within their bytes.

PyIceberg's own, in C, trusts the lengths in a file: what lies behind it in memory would become values.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import AvroFile, Block
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.typedef import StructProtocol
from pyiceberg.types import FixedType, IcebergType, ListType, MapType, StructType, UnknownType

_SYNC = 16
_Record = TypeVar("_Record", bound=StructProtocol)


def kind_of(authentic: bool) -> type[AvroFile[Any]]:
    """Return what reads a file: PyIceberg's own, which is faster, only what users of the table's master key wrote."""
    return AvroFile if authentic else BoundedAvroFile


class BoundedAvroFile(AvroFile[_Record]):
    """A file that is not what its header, its counts and its lengths say is an error, not the end of the file."""

    def __enter__(self) -> BoundedAvroFile[_Record]:
        """Read the file and its header.

        Raises:
            ValueError: it is not an Avro file with a schema.
        """
        with self.input_file.open() as file:
            self.decoder: Any = _Decoder(bytes(file.read()))
        self.header = self._read_header()
        self.schema = self.header.get_schema()
        _has_bytes(self.schema.as_struct())
        self.read_schema = self.read_schema or self.schema
        self.reader = resolve_reader(
            self.schema, self.read_schema, self.read_types, self.read_enums
        )
        return self

    def __next__(self) -> _Record:
        """Return the next record.

        Raises:
            ValueError: the file was cut off or changed.
        """
        while self.block is None or not self.block.has_next():
            if self.block is not None and not self._records.is_at_end():
                raise ValueError("a block has more bytes than its records")
            if self.decoder.is_at_end():
                raise StopIteration
            self._read_block()
        return next(self.block)

    def _read_block(self) -> int:
        count: int
        count, data = self.decoder.read_int(), self.decoder.read_bytes()
        if self.decoder.read(_SYNC) != self.header.sync:
            raise ValueError("a block does not end with the file's sync marker")
        if codec := self.header.compression_codec():
            data = codec.decompress(data)
        if not 0 <= count <= len(data):  # a record of these files has one byte at least
            raise ValueError(f"a block of {len(data)} bytes cannot have {count} records")
        self._records = _Decoder(data)
        self.block = Block(self.reader, count, self._records)
        return count


def _has_bytes(kind: IcebergType) -> bool:
    """Whether each value of a type has a byte at least.

    Raises:
        ValueError: there is an array or a map of it whose elements have none: its count could be any.
    """
    if isinstance(kind, StructType):
        fields = [_has_bytes(one.field_type) or not one.required for one in kind.fields]
        return any(fields)
    if isinstance(kind, ListType):
        bounded = _has_bytes(kind.element_type) or not kind.element_required
    elif isinstance(kind, MapType):
        parts = [_has_bytes(kind.key_type), _has_bytes(kind.value_type) or not kind.value_required]
        bounded = any(parts)
    else:
        return not isinstance(kind, UnknownType) and not (
            isinstance(kind, FixedType) and len(kind) == 0
        )
    if not bounded:
        raise ValueError("an array of nothing")
    return True


class _Decoder(BinaryDecoder):
    """Decodes bytes, and no others."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def tell(self) -> int:
        return self._at

    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def read(self, n: int) -> bytes:
        start = self._at
        self.skip(n)
        return self._data[start : self._at]

    def skip(self, n: int) -> None:
        if not 0 <= n <= len(self._data) - self._at:
            raise ValueError(
                f"it says that {n} bytes follow where it has {len(self._data) - self._at}"
            )
        self._at += n

    def read_int(self) -> int:
        data, at = self._data, self._at
        value = shift = 0
        try:
            while (byte := data[at]) >= 0x80 and shift < 63:  # of 64 bits
                value |= (byte & 0x7F) << shift
                shift += 7
                at += 1
        except IndexError:
            raise ValueError("a number in it is cut off") from None
        if byte >= 0x80:
            raise ValueError("a number in it has more than 64 bits")
        self._at = at + 1
        value |= byte << shift
        return (value >> 1) ^ -(value & 1)

    def read_bytes(self) -> bytes:
        return self.read(self.read_int())

    def skip_int(self) -> None:
        self.read_int()
