"""A file as it is stored, not decrypted, of which a check reads each byte once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark_iceberg_crypto.reader.proof._problems import StorageError, unknown

if TYPE_CHECKING:
    from pyiceberg.io import InputFile, InputStream

WHOLE = 8 << 20  # up to this length a file is read with its first byte
_WINDOW = 1 << 20  # read at least, where a file is read from start to end


class StoredFile:
    """The bytes of a file. What the storage raises is a `StorageError`, whose cause it is. For one thread."""

    def __init__(self, stored: InputFile, whole: bool = False) -> None:
        """Ask for the file's length, and open nothing yet.

        Args:
            stored: the file.
            whole: whether all of it will be read.
        """
        self.location = stored.location
        self._stored, self._whole = stored, whole
        self._file: InputStream | None = None
        self._window, self._start = memoryview(b""), 0
        try:
            self.length = len(stored)
        except Exception as error:
            raise StorageError from error

    def __enter__(self) -> StoredFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(Exception):  # all that was asked for was read
                self._file.close()

    def read(self, position: int, count: int) -> memoryview:
        """Return bytes of the file; they are in it, so that no more is allocated than it has."""
        start = position - self._start
        if start < 0 or start + count > len(self._window):
            self._fill(position, count)
            start = position - self._start
        return self._window[start : start + count]

    def head(self, count: int) -> bytes:
        """Return its first bytes, fewer if it has no more."""
        return self.bytes_at(0, min(count, self.length))

    def bytes_at(self, position: int, count: int) -> bytes:
        """Return a copy of bytes of the file."""
        return bytes(self.read(position, count))

    def _fill(self, position: int, count: int) -> None:
        if self._whole and self.length <= WHOLE:
            position, size = 0, self.length
        else:
            most = self.length - position
            size = min(most, max(count, _WINDOW if self._whole else count))
        start = position - self._start
        kept = self._window[start:] if 0 <= start <= len(self._window) else memoryview(b"")
        more = self._read(position + len(kept), size - len(kept))
        self._window = memoryview(bytes(kept) + more if kept else more)
        self._start = position

    def _read(self, position: int, count: int) -> bytes:
        parts: list[bytes] = []
        left = count
        try:
            if self._file is None:
                self._file = self._stored.open()
            self._file.seek(position)
            while left > 0 and (part := self._file.read(left)):
                parts.append(part)
                left -= len(part)
        except Exception as error:
            raise StorageError from error
        if left > 0:
            raise unknown(
                f"its storage ended the read after {position + count - left} bytes, but gives its length as "
                f"{self.length}"
            )
        return parts[0] if len(parts) == 1 else b"".join(parts)
