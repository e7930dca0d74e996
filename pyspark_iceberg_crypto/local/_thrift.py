"""A bounded reader of Thrift's compact protocol, for Parquet's footers and headers.

The bytes may be hostile. It takes what Parquet's own Thrift code takes (the tests compare the two): no length is
believed before the bytes are there, and nesting has a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MAX_NESTING = 16

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(14)
_BITS = {I16: 16, I32: 32, I64: 64}
_FIXED = {BYTE: 1, DOUBLE: 8, UUID: 16}
# How many bytes an element takes at least. A struct is one byte, but Thrift counts none.
_LEAST = {STOP: 0, STRUCT: 0, DOUBLE: 8}


class MalformedError(ValueError):
    """The bytes are not what Thrift writes."""


class Field(NamedTuple):
    """A field's header."""

    type: int
    id: int


class Wanted(NamedTuple):
    """A field of a struct that is read; others are skipped.

    Attributes:
        name: what to call it in the result.
        type: one of the types above; TRUE for a boolean.
        of: the fields of the struct that it is, or that are in its list; or the type of what is in its list.
        required: whether a struct without it is malformed.
        is_union: whether it is a struct that has one field.
    """

    name: str
    type: int
    of: Mapping[int, Wanted] | int | None = None
    required: bool = False
    is_union: bool = False


class CompactReader:
    """Reads from the start of some bytes; ``position`` is how far it came."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self._last_ids: list[int] = []
        self._last_id = 0
        self._bool: bool | None = None  # a field's header holds its value

    def take(self, count: int) -> bytes:
        """Read so many bytes."""
        if count < 0 or count > len(self._data) - self.position:
            raise MalformedError("it ends too early")
        start = self.position
        self.position += count
        return self._data[start : self.position]

    def _byte(self) -> int:
        return self.take(1)[0]

    def _varint(self, bits: int) -> int:
        """Read an unsigned number, as Java does: what is too long wraps around."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << (shift % bits)
            shift += 7
            if byte < 0x80:
                return value & ((1 << bits) - 1)

    def _size(self) -> int:
        """Read a length that must not be longer than all there is."""
        size = self._varint(32)
        if size > len(self._data):
            raise MalformedError(f"it has a length of {size}")
        return size

    def binary(self) -> bytes:
        """Read a length and that many bytes."""
        return self.take(self._size())

    def boolean(self) -> bool:
        """Read a field's boolean, which its header held, or a list's."""
        value, self._bool = self._bool, None
        return self._byte() == TRUE if value is None else value

    def integer(self, bits: int) -> int:
        """Read a signed number of 16, 32 or 64 bits."""
        number = self._varint(max(bits, 32))
        return _signed((number >> 1) ^ -(number & 1), bits)

    def struct(self, wanted: Mapping[int, Wanted]) -> dict[str, Any]:
        """Read a struct; a field of another type than is wanted is skipped, as Thrift does.

        Raises:
            MalformedError: it is not one, or a required field is missing.
        """
        found: dict[str, Any] = {}
        self.begin_struct()
        while (field := self.field()).type != STOP:
            found |= self._field(field, wanted)
        self.end_struct()
        for one in wanted.values():
            if one.required and one.name not in found:
                raise MalformedError(f"it has no {one.name}")
        return found

    def _union(self, wanted: Mapping[int, Wanted]) -> dict[str, Any]:
        """Read one field, and a byte behind it that should be the end."""
        self.begin_struct()
        found = self._field(self.field(), wanted)
        self.field()
        self.end_struct()
        return found

    def _field(self, field: Field, wanted: Mapping[int, Wanted]) -> dict[str, Any]:
        one = wanted.get(field.id)
        kind = TRUE if field.type == FALSE else field.type
        if one is not None and one.type == kind:
            return {one.name: self._value(one)}
        self.skip(field.type)
        return {}

    def _value(self, one: Wanted) -> Any:
        if one.type == STRUCT:
            read = self._union if one.is_union else self.struct
            return read(one.of if isinstance(one.of, Mapping) else {})
        if one.type == LIST:
            return self._list(one)
        if one.type == BINARY:
            return self.binary()
        return self.boolean() if one.type == TRUE else self.integer(_BITS[one.type])

    def _list(self, one: Wanted) -> list[Any]:
        kind, size = self._list_header()
        is_struct = isinstance(one.of, Mapping)
        if size and kind != (STRUCT if is_struct else one.of):
            raise MalformedError(f"it has a list of type {kind}")
        element = Wanted(one.name, kind, one.of if is_struct else None)
        # a struct takes a byte at least, though Thrift counts none
        return [self._value(element) for _ in range(min(size, len(self._data) + 1))]

    def begin_struct(self) -> None:
        """Start a struct: its field numbers start again."""
        self._last_ids.append(self._last_id)
        self._last_id = 0

    def end_struct(self) -> None:
        """End a struct."""
        self._last_id = self._last_ids.pop()

    def field(self) -> Field:
        """Read the header of a struct's next field; its type is STOP behind the last one."""
        head = self._byte()
        if head == STOP:
            return Field(STOP, 0)
        delta, kind = head >> 4, _checked(head & 0x0F)
        number = self.integer(16) if delta == 0 else self._last_id + delta
        self._last_id = _signed(number, 16)
        if kind in (TRUE, FALSE):
            self._bool = kind == TRUE
        return Field(kind, self._last_id)

    def skip(self, kind: int, depth: int = MAX_NESTING) -> None:
        """Read a value that is of no interest."""
        if depth <= 0:
            raise MalformedError("it is nested too deeply")
        if kind in (TRUE, FALSE):
            self.boolean()
        elif kind in _FIXED:
            self.take(_FIXED[kind])
        elif kind in (I16, I32, I64):
            self._varint(64 if kind == I64 else 32)
        elif kind == BINARY:
            self.binary()
        elif kind == STRUCT:
            self.begin_struct()
            while (field := self.field()).type != STOP:
                self.skip(field.type, depth - 1)
            self.end_struct()
        elif kind in (LIST, SET):
            self._skip_list(depth - 1)
        elif kind == MAP:
            self._skip_map(depth - 1)
        else:
            raise MalformedError(f"it has a value of type {kind}")

    def _list_header(self) -> tuple[int, int]:
        head = self._byte()
        size = head >> 4
        if size == 15:
            size = self._size()
        kind = _checked(head & 0x0F)
        self._check_room(size, kind)
        return kind, size

    def _skip_list(self, depth: int) -> None:
        kind, size = self._list_header()
        for _ in range(min(size, len(self._data) + 1)):
            self.skip(kind, depth)

    def _skip_map(self, depth: int) -> None:
        size = self._size()
        head = self._byte() if size else 0
        key, value = _checked(head >> 4), _checked(head & 0x0F)
        if size:
            self._check_room(size, key, value)
        for _ in range(size):
            self.skip(key, depth)
            self.skip(value, depth)

    def _check_room(self, size: int, *kinds: int) -> None:
        """Refuse a list that is longer than all there is; one of UUIDs too, as Thrift does in Java."""
        if UUID in kinds or size * sum(_LEAST.get(kind, 1) for kind in kinds) > len(self._data):
            raise MalformedError(f"it has a list of {size} elements")


def _checked(kind: int) -> int:
    if kind > UUID:
        raise MalformedError(f"it has a value of type {kind}")
    return kind


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number
